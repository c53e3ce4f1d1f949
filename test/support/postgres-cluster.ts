/**
 * The files of a private PostgreSQL server, made ready to start. The first is made by initdb and kept under `node_modules/.cache`;
 * all others are copies of that one, which takes a tenth of the time. Neither initdb nor the server runs as root: where the tests
 * do, both are given to another account, and so are the files.
 */
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runInContainer } from './container.ts'
import { type Account, isOther } from './server-process.ts'
import type { Place } from './services.ts'

/** The only role, a superuser. */
export const SUPERUSER = 'holdfast'

export type Settings = Readonly<Record<string, string | number | boolean>>

export interface ClusterFiles {
  readonly folder: string
  readonly place: Place
  readonly account: Account
  readonly settings: Settings
  readonly tls: 'none' | 'offered' | 'required'
}

/** Locally: removes the piece of shared memory that a killed server leaves in the system. To be run in the folder. */
export const FAREWELL = `
  if [ -f data/postmaster.pid ]; then
    { for n in 1 2 3 4 5 6; do read -r line; done; read -r key id; } <data/postmaster.pid
    [ -z "$id" ] || ipcrm -m "$id"
  fi`

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-test/', import.meta.url))
const INITDB_OPTIONS = ['-U', SUPERUSER, '-E', 'UTF8', '--locale=C', '--auth=trust', '-N'] as const
const NO_ACCOUNT_ID = 65_534

const run = promisify(execFile)

/** The account that runs the tests, or a lesser one in the place of root. */
export async function serverAccount(): Promise<Account> {
  const [uid, gid] = [process.getuid?.() ?? -1, process.getgid?.() ?? -1]
  if (uid !== 0) return { uid, gid }
  for (const name of ['postgres', 'nobody']) {
    try {
      const [user, group] = await Promise.all(['-u', '-g'].map((what) => run('id', [what, name])))
      return { uid: Number(user?.stdout), gid: Number(group?.stdout) }
    } catch {
      // This system has no such account.
    }
  }
  return { uid: NO_ACCOUNT_ID, gid: NO_ACCOUNT_ID }
}

/** Makes `data` in the folder, configured; the password of the superuser is not asked for yet. */
export async function makeCluster(files: ClusterFiles): Promise<void> {
  const { folder, account, settings, tls } = files
  await give(folder, account)
  await copyOrMake(files)
  const data = join(folder, 'data')
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'`)
  await appendFile(join(data, 'postgresql.conf'), `${lines.join('\n')}\n`)
  if (tls !== 'none') await makeCertificate(data)
  await admit(files, 'trust')
  await give(folder, account)
}

/** How everybody proves who they are, from the next start or reload on. */
export async function admit({ folder, tls }: Pick<ClusterFiles, 'folder' | 'tls'>, method: string): Promise<void> {
  const kind = tls === 'required' ? 'hostssl' : 'host'
  const lines = ['all', 'replication'].map((database) => `${kind} ${database} all 127.0.0.1/32 ${method}\n`)
  await writeFile(join(folder, 'data', 'pg_hba.conf'), lines.join(''))
}

/** What the server loads beside itself, at places where its account may read it. */
export async function readableEnvironment(
  { folder, account }: Pick<ClusterFiles, 'folder' | 'account'>,
  env: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  if (!isOther(account) || env.LD_PRELOAD === undefined) return { ...env }
  const copies = env.LD_PRELOAD.split(':').map(async (library) => {
    const copy = join(folder, basename(library))
    await copyFile(library, copy)
    return copy
  })
  return { ...env, LD_PRELOAD: (await Promise.all(copies)).join(':') }
}

async function copyOrMake(files: ClusterFiles): Promise<void> {
  const data = join(files.folder, 'data')
  const template = join(CACHE, `postgres-${await fingerprint(files.place)}`)
  if (existsSync(template)) {
    await run('cp', ['-R', template, data])
    return
  }
  await initialize(files)
  await mkdir(CACHE, { recursive: true })
  const copy = `${template}.${randomUUID()}`
  await run('cp', ['-R', data, copy])
  await run('sync') // It will be there after a crash of the machine, and must be whole then.
  await rename(copy, template).catch(() => rm(copy, { recursive: true })) // Another process was faster.
}

/** Of all that decides what initdb makes. */
async function fingerprint(place: Place): Promise<string> {
  const version = place.kind === 'local' ? (await run(place.program, ['--version'])).stdout : place.image
  const facts = [version, process.arch, ...INITDB_OPTIONS].join(' ')
  return createHash('sha256').update(facts).digest('hex').slice(0, 16)
}

async function initialize({ folder, place, account }: ClusterFiles): Promise<void> {
  const program = place.program.replace(/postgres$/, 'initdb')
  const args = [...INITDB_OPTIONS, '-D', join(folder, 'data')]
  if (place.kind === 'local') await run(program, args, { cwd: folder, ...(isOther(account) ? account : {}) })
  else await runInContainer(place.image, { program, args, folder, env: {}, account })
}

/** Its own authority, for `localhost` only. */
async function makeCertificate(data: string): Promise<void> {
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ...['-keyout', join(data, 'server.key'), '-out', join(data, 'server.crt')],
  ])
}

async function give(folder: string, account: Account): Promise<void> {
  if (isOther(account)) await run('chown', ['-R', `${account.uid}:${account.gid}`, folder])
}
