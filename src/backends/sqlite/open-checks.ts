/**
 * What is looked at before a file is opened, so that a bad path, file or driver is one clear error and leaves nothing
 * behind: the driver and its version, the folder, the kind and the rights of the file, its first bytes.
 */
import { closeSync, openSync, readSync, type Stats, statfsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { type ErrorCode, HoldfastError } from '../../errors.ts'
import { HERE } from '../../worker-file.ts'
import { storeError } from './errors.ts'

export type Driver = typeof Database

const require = createRequire(HERE)

/** Below this SQLite can lose a reset of the log: https://www.sqlite.org/releaselog/3_51_3.html */
const SQLITE_VERSION_MIN = '3.51.3'
const HEADER = 'SQLite format 3\0'

function missing(problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    'DEPENDENCY_MISSING',
    `the SQLite store needs the package better-sqlite3: ${problem}. Run: npm install better-sqlite3@12`,
    { details: { dependency: 'better-sqlite3', outcome: 'refused' }, cause },
  )
}

/** Throws DEPENDENCY_MISSING when this version of the driver does not work on this Node. */
export function checkDriverVersion(version: string, nodeVersion: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  const nodeMajor = Number.parseInt(nodeVersion.replace(/^v/, ''), 10)
  const isInRange = major === 13 || (major === 12 && (minor > 11 || (minor === 11 && patch >= 1)))
  if (!isInRange) throw missing(`version ${version} is installed; ^12.11.1 or ^13 is needed`)
  // Loading it there ends the whole process with a segmentation fault, which nothing can catch.
  if (major === 13 && nodeMajor < 22)
    throw missing(`version ${version} crashes Node ${nodeMajor}; take version 12 there`)
}

/** Throws DEPENDENCY_MISSING when the SQLite inside the driver is too old. */
export function checkSqliteVersion(version: string): void {
  const order = version.localeCompare(SQLITE_VERSION_MIN, 'en', { numeric: true })
  if (order < 0) throw missing(`it brings SQLite ${version}; ${SQLITE_VERSION_MIN} or later is needed`)
}

/** Loads better-sqlite3, having read its version first. `load` stands in for `require` in tests. */
export function loadDriver(load: (name: string) => unknown = require): Driver {
  let manifest: unknown
  try {
    manifest = load('better-sqlite3/package.json')
  } catch (cause) {
    throw missing('it is not installed', cause)
  }
  const version = typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : ''
  checkDriverVersion(String(version), process.version)
  try {
    return load('better-sqlite3') as Driver
  } catch (cause) {
    throw missing('it is installed but does not load', cause)
  }
}

function refuse(code: ErrorCode, path: string, problem: string): HoldfastError {
  return new HoldfastError(code, `the SQLite store ${path} ${problem}`, { details: { path, outcome: 'refused' } })
}

function statOrNull(path: string): Stats | null {
  try {
    return statSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw storeError(error, path, 'open')
  }
}

export interface PathWish {
  readonly isReadonly: boolean
  /** False: a file that is not there is an error. */
  readonly mayCreate: boolean
}

/** Throws unless the path can hold a store; creates the file, for its owner alone, when all else is in order. */
export function checkPath(path: string, { isReadonly, mayCreate }: PathWish): void {
  const folder = dirname(path)
  const folderStats = statOrNull(folder)
  if (folderStats === null) throw refuse('STORE_UNAVAILABLE', path, `cannot be opened: the folder ${folder} is missing`)
  if (!folderStats.isDirectory()) throw refuse('STORE_UNAVAILABLE', path, `cannot be opened: ${folder} is no folder`)
  refuseNetwork(path, folder)
  const stats = statOrNull(path)
  if (stats === null && (isReadonly || !mayCreate)) throw refuse('STORE_UNAVAILABLE', path, 'does not exist')
  // The log is a file beside the store. What nobody may write is taken at its word, by root too.
  if (!isReadonly && (folderStats.mode & 0o222) === 0)
    throw refuse('STORE_READONLY', path, `cannot be written: nobody may write in the folder ${folder}`)
  if (stats === null) create(path)
  else checkFile(path, stats, isReadonly)
}

function checkFile(path: string, stats: Stats, isReadonly: boolean): void {
  if (!stats.isFile())
    throw refuse('STORE_UNAVAILABLE', path, stats.isDirectory() ? 'is a folder, not a file' : 'is not a regular file')
  if (process.platform !== 'win32' && (stats.mode & 0o444) === 0)
    throw refuse('STORE_READONLY', path, 'may not be read by anybody')
  if (!isReadonly && (stats.mode & 0o222) === 0) throw refuse('STORE_READONLY', path, 'may not be written by anybody')
  const header = readHeader(path, isReadonly)
  if (header !== '' && header !== HEADER) throw refuse('STORE_CORRUPT', path, 'is not a SQLite database')
}

/** Also proves that the file can be opened in the way that it will be. */
function readHeader(path: string, isReadonly: boolean): string {
  try {
    const file = openSync(path, isReadonly ? 'r' : 'r+')
    try {
      const bytes = Buffer.alloc(HEADER.length)
      return bytes.subarray(0, readSync(file, bytes, 0, HEADER.length, 0)).toString('latin1')
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw storeError(error, path, 'open')
  }
}

function create(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (!isThere) throw storeError(error, path, 'open')
  }
}

/** NFS, SMB, CIFS, SMB2: their locks do not hold what SQLite needs. https://www.sqlite.org/wal.html, "same host" */
const NETWORK_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42])

function refuseNetwork(path: string, folder: string): void {
  let type: number
  try {
    type = statfsSync(folder).type
  } catch {
    return // Where the kind cannot be told, SQLite's own checks remain.
  }
  if (NETWORK_FILE_SYSTEMS.has(type)) {
    throw refuse('STORE_UNAVAILABLE', path, 'is on a network file system, where SQLite cannot be shared safely')
  }
}
