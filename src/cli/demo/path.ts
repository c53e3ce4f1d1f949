/** Paths as the file system has them: bytes, which need not be UTF-8. Loaded in threads too, so it imports only Node. */
import { isUtf8 } from 'node:buffer'
import { sep } from 'node:path'

const SEPARATOR = Buffer.from(sep)

/** `relative` inside `folder`; a path of bytes stays bytes. */
export function absolutePath(folder: string, relative: string | Uint8Array): string | Buffer {
  if (typeof relative === 'string') return folder.endsWith(sep) ? folder + relative : folder + sep + relative
  return Buffer.concat([Buffer.from(folder), SEPARATOR, relative])
}

/** The path as text when text keeps it, and its bytes only when text does not. */
export function readablePath(bytes: Buffer): { readonly path: string; readonly raw: Uint8Array | null } {
  return isUtf8(bytes) ? { path: bytes.toString(), raw: null } : { path: bytes.toString(), raw: Uint8Array.from(bytes) }
}
