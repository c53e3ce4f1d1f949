/** Reads the files that a URL names for TLS, and makes of them what the driver takes. */
import { readFile } from 'node:fs/promises'
import type { ClientConfig } from 'pg'
import { HoldfastError } from '../../errors.ts'
import type { Tls } from './location.ts'

/** `false` and not undefined where there is none: the driver would ask the environment. */
export type DriverTls = Exclude<ClientConfig['ssl'], undefined>

export async function driverTls({ mode, rootFile, certificateFile, keyFile }: Tls): Promise<DriverTls> {
  if (mode === 'disable') return false
  const [ca, cert, key] = await Promise.all([
    read('sslrootcert', rootFile),
    read('sslcert', certificateFile),
    read('sslkey', keyFile),
  ])
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    rejectUnauthorized: mode !== 'require',
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  }
}

async function read(parameter: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path)
  } catch (cause) {
    const message = `url: the file of parameter ${parameter} cannot be read`
    throw new HoldfastError('INVALID_URL', message, { details: { field: 'url' }, cause })
  }
}
