/**
 * Reads the URLs of the PostgreSQL store: `postgres://` or `postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`.
 * Throws INVALID_URL; the URL itself is never repeated in the message, since it may hold a password.
 */
import { decodeUrlPart, refuseUrl, splitUrl } from '../url-part.ts'
import {
  DEFAULT_PORT,
  DEFAULT_SCHEMA,
  type Endpoint,
  isSocket,
  type SslMode,
  schemaProblem,
  type Target,
  type Tls,
  type UrlLocation,
} from './location.ts'

const SCHEME = /^postgres(?:ql)?:\/\//i
const CONNECTIONS = 4
const CONNECTIONS_MAX = 100
const APPLICATION_NAME_BYTES_MAX = 63

/** Of a connection, and so also known in the URL for LISTEN. */
const TARGET_PARAMETERS = [
  'application_name',
  'host',
  'port',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'target_session_attrs',
] as const
const STORE_PARAMETERS = ['connections', 'listen', 'migrate', 'notify', 'pooler', 'schema'] as const

type Parameters = ReadonlyMap<string, string>

export function isPostgresUrl(url: unknown): boolean {
  return typeof url === 'string' && SCHEME.test(url)
}

export function parsePostgresUrl(url: string): UrlLocation {
  const { target, parameters } = parse(url, [...TARGET_PARAMETERS, ...STORE_PARAMETERS])
  const schema = parameters.get('schema') ?? DEFAULT_SCHEMA
  const problem = schemaProblem(schema)
  if (problem !== null) throw refuseUrl(`schema: ${problem}`)
  return {
    kind: 'url',
    target,
    schema,
    isPooled: readChoice(parameters, 'pooler', ['transaction']) !== undefined,
    isMigrating: readSwitch(parameters, 'migrate'),
    isNotifying: readSwitch(parameters, 'notify'),
    connections: readConnections(parameters.get('connections')),
    listen: readListen(parameters.get('listen'), target),
  }
}

/** The URL of a connection alone, without settings of the store. */
export function parseTarget(url: string): Target {
  if (!SCHEME.test(url)) throw refuseUrl('expected postgres:// or postgresql://')
  return parse(url, TARGET_PARAMETERS).target
}

function parse(url: string, known: readonly string[]): { readonly target: Target; readonly parameters: Parameters } {
  if (!SCHEME.test(url)) throw refuseUrl('expected postgres:// or postgresql://')
  const { userinfo, hosts, path, query } = splitUrl(url.replace(SCHEME, ''))
  const parameters = readQuery(query, known)
  readChoice(parameters, 'target_session_attrs', ['read-write', 'primary'])
  const endpoints = readEndpoints(hosts, parameters)
  const applicationName = parameters.get('application_name') ?? 'holdfast'
  if (applicationName === '' || Buffer.byteLength(applicationName) > APPLICATION_NAME_BYTES_MAX)
    throw refuseUrl(`application_name must have 1 to ${APPLICATION_NAME_BYTES_MAX} bytes`)
  const database = decodeUrlPart(path, 'the database')
  if (path.includes('/')) throw refuseUrl("the database is one word after the host; write a '/' in it %2F")
  refuseNul({ database, applicationName })
  const target = {
    endpoints,
    ...readUserinfo(userinfo),
    database: database === '' ? undefined : database,
    tls: readTls(parameters, endpoints),
    applicationName,
  }
  return { target, parameters }
}

/** NUL would end the word in the first packet, and what follows it would be read as another one. */
function refuseNul(parts: Readonly<Record<string, string | undefined>>): void {
  for (const [name, text] of Object.entries(parts))
    if (text?.includes('\0')) throw refuseUrl(`${name} has a NUL character`)
}

function readUserinfo(userinfo: string | undefined): Pick<Target, 'user' | 'password'> {
  if (userinfo === undefined) return { user: undefined, password: undefined }
  const colon = userinfo.indexOf(':')
  const user = decodeUrlPart(colon === -1 ? userinfo : userinfo.slice(0, colon), 'the user')
  const password = colon === -1 ? undefined : decodeUrlPart(userinfo.slice(colon + 1), 'the password')
  if (user === '') throw refuseUrl("a user is missing before '@'")
  refuseNul({ 'the user': user, 'the password': password })
  return { user, password: password === '' ? undefined : password }
}

function readQuery(query: string, known: readonly string[]): Parameters {
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    // What does not look like parameters may be the rest of a password.
    if (!known.includes(name) && (!/^\w{1,40}$/.test(name) || query.includes('@')))
      throw refuseUrl("after '?' come parameters; in user or password write %3F for '?'")
    if (!known.includes(name)) throw refuseUrl(`unknown parameter '${name}'; known are ${[...known].sort().join(', ')}`)
    if (parameters.has(name)) throw refuseUrl(`parameter '${name}' is given twice`)
    parameters.set(name, value)
  }
  return parameters
}

function readChoice<T extends string>(parameters: Parameters, name: string, choices: readonly T[]): T | undefined {
  const value = parameters.get(name)
  if (value === undefined) return undefined
  const choice = choices.find((each) => each === value)
  if (choice === undefined) throw refuseUrl(`${name} must be ${choices.join(' or ')}`)
  return choice
}

const readSwitch = (parameters: Parameters, name: string): boolean =>
  readChoice(parameters, name, ['on', 'off']) !== 'off'

function readConnections(text: string | undefined): number {
  if (text === undefined) return CONNECTIONS
  const connections = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (connections < 1 || connections > CONNECTIONS_MAX)
    throw refuseUrl(`connections must be a number from 1 to ${CONNECTIONS_MAX}`)
  return connections
}

/** What the URL for LISTEN leaves out is as in the first one. */
function readListen(text: string | undefined, { user, password, database, tls }: Target): Target | null | undefined {
  if (text === undefined) return undefined
  if (text === 'off') return null
  if (!SCHEME.test(text)) throw refuseUrl('listen must be off or an encoded postgres:// URL')
  const { target, parameters } = parse(text, TARGET_PARAMETERS)
  const isSameUser = target.user === undefined || target.user === user
  return {
    ...target,
    user: target.user ?? user,
    password: target.password ?? (isSameUser ? password : undefined),
    database: target.database ?? database,
    tls: [...parameters.keys()].some((name) => name.startsWith('ssl')) ? target.tls : tls,
  }
}

/** Hosts stand where a URL has them; a Unix socket may also be given by `host`, as libpq and cloud providers write it. */
function readEndpoints(hosts: string, parameters: Parameters): readonly Endpoint[] {
  const host = parameters.get('host')
  const port = readPort(parameters.get('port')) ?? DEFAULT_PORT
  if (hosts !== '' && (host !== undefined || parameters.has('port')))
    throw refuseUrl('host and port are given twice, before the database and as parameters')
  if (hosts !== '') return hosts.split(',').map(readHost)
  if (host === undefined || host === '')
    throw refuseUrl('a host is missing: postgres://HOST/DATABASE, or ?host=/FOLDER for a Unix socket')
  refuseNul({ host })
  return [{ host, port }]
}

function readHost(text: string): Endpoint {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]\s]*))(?::(\d*))?$/.exec(text)
  const host = match?.[1] ?? decodeUrlPart(match?.[2] ?? '', 'the host')
  if (match === null || host === '') throw refuseUrl('expected host, host:port or [IPv6]:port, separated by commas')
  refuseNul({ host })
  return { host, port: readPort(match[3]) ?? DEFAULT_PORT }
}

function readPort(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw refuseUrl('a port must be from 1 to 65535')
  return port
}

function readTls(parameters: Parameters, endpoints: readonly Endpoint[]): Tls {
  const mode = readSslMode(parameters.get('sslmode'))
  const path = (name: string): string | undefined => {
    const value = parameters.get(name)
    if (value === '') throw refuseUrl(`${name} must be the path of a file`)
    if (value !== undefined && mode === 'disable')
      throw refuseUrl(`${name} needs sslmode require, verify-ca or verify-full`)
    return value
  }
  const root = path('sslrootcert')
  const certificateFile = path('sslcert')
  const keyFile = path('sslkey')
  if ((certificateFile === undefined) !== (keyFile === undefined)) throw refuseUrl('sslcert and sslkey need each other')
  if (mode !== 'disable' && endpoints.some(isSocket)) throw refuseUrl('a Unix socket has no TLS: leave sslmode out')
  const rootFile = root === 'system' ? undefined : root
  // As libpq does: whoever names the signers wants them checked.
  return { mode: mode === 'require' && rootFile !== undefined ? 'verify-ca' : mode, rootFile, certificateFile, keyFile }
}

function readSslMode(text: string | undefined): SslMode {
  switch (text) {
    case undefined:
      return 'disable'
    case 'disable':
    case 'require':
    case 'verify-ca':
    case 'verify-full':
      return text
    case 'allow':
    case 'prefer':
      throw refuseUrl(`sslmode=${text} would go on without TLS when it fails; choose disable, require or verify-full`)
    default:
      throw refuseUrl('sslmode must be disable, require, verify-ca or verify-full')
  }
}
