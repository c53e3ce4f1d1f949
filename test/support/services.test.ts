/** Where tests take their servers from, on machines of every kind: the first way that works, or an error that names all three. */
import { describe, expect, it } from 'vitest'
import { rejection } from './event.ts'
import { findService, findServices, type Surroundings, service } from './services.ts'

interface Machine {
  readonly programs?: Record<string, string>
  readonly hasEngine?: boolean
  readonly isDebianRoot?: boolean
  /** What an installation brings; null: it fails. */
  readonly packages?: Record<string, string> | null
}

function machine({ programs = {}, hasEngine = false, isDebianRoot = false, packages = {} }: Machine): Surroundings & {
  readonly installed: string[]
} {
  const present = { ...programs }
  const installed: string[] = []
  return {
    installed,
    names: async (folder) =>
      Object.keys(present).flatMap((path) =>
        path.startsWith(folder) ? (path.slice(folder.length).split('/')[0] ?? []) : [],
      ),
    version: async (program) => present[program] ?? null,
    containerProblem: async () => (hasEngine ? null : 'no engine answers'),
    packageProblem: async () => (isDebianRoot ? null : 'not root'),
    install: async (names) => {
      if (packages === null) throw new Error('no network')
      installed.push(...names)
      Object.assign(present, packages)
    },
  }
}

const REDIS_6 = 'Redis server v=6.0.16 sha=00000000:0'
const REDIS_7 = 'Redis server v=7.0.15 sha=00000000:0'
const VALKEY = 'Valkey server v=8.1.1 sha=00000000:0'

describe('a Redis server for tests', () => {
  it('is the program on the PATH, whatever else there is', async () => {
    const surroundings = machine({ programs: { 'redis-server': REDIS_7 }, hasEngine: true, isDebianRoot: true })
    expect(await findService('redis', surroundings)).toEqual({ kind: 'local', program: 'redis-server' })
    expect(surroundings.installed).toEqual([])
  })

  it('may be Valkey, also beside a Redis that is too old', async () => {
    const programs = { 'redis-server': REDIS_6, 'valkey-server': VALKEY }
    expect(await findService('redis', machine({ programs }))).toEqual({ kind: 'local', program: 'valkey-server' })
  })

  it('is a container where there is none or an old one, before anything is installed', async () => {
    for (const programs of [{}, { 'redis-server': REDIS_6 }]) {
      const surroundings = machine({ programs, hasEngine: true, isDebianRoot: true })
      expect(await findService('redis', surroundings)).toMatchObject({ kind: 'container', image: 'redis:7' })
      expect(surroundings.installed).toEqual([])
    }
  })

  it('is installed on Debian as root where nothing else is', async () => {
    const surroundings = machine({ isDebianRoot: true, packages: { 'redis-server': REDIS_7 } })
    expect(await findService('redis', surroundings)).toEqual({ kind: 'local', program: 'redis-server' })
    expect(surroundings.installed).toEqual(['redis-server'])
  })

  it('is missing with an error that names the three ways and what is wrong with each', async () => {
    const { message } = await rejection(findService('redis', machine({ programs: { 'redis-server': REDIS_6 } })))
    expect(message).toContain('redis-server is too old (Redis server v=6.0.16')
    expect(message).toContain('redis-server on the PATH')
    expect(message).toContain('a Docker engine, for the image redis:7 (now: no engine answers)')
    expect(message).toContain('apt-get install redis-server (now: not root)')
  })

  it('is missing when the installation fails, or brings one that is too old', async () => {
    const failing = machine({ isDebianRoot: true, packages: null })
    expect((await rejection(findService('redis', failing))).message).toContain('failed: no network')
    const old = machine({ isDebianRoot: true, packages: { 'redis-server': REDIS_6 } })
    expect((await rejection(findService('redis', old))).message).toContain(
      'was installed, and then: redis-server is too',
    )
  })
})

const POSTGRES_15 = 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n'
const DEBIAN = (version: string): string => `/usr/lib/postgresql/${version}/bin/postgres`

describe('a PostgreSQL server for tests', () => {
  it('is the program on the PATH, or the newest of those that the system keeps beside it', async () => {
    const beside = {
      [DEBIAN('9.6')]: 'postgres (PostgreSQL) 9.6.24',
      [DEBIAN('15')]: POSTGRES_15,
      [DEBIAN('17')]: 'postgres (PostgreSQL) 17.2',
      [DEBIAN('common')]: 'none',
    }
    expect(await findService('postgres', machine({ programs: beside }))).toEqual({
      kind: 'local',
      program: DEBIAN('17'),
    })
    const both = machine({ programs: { ...beside, postgres: 'postgres (PostgreSQL) 18beta1' } })
    expect(await findService('postgres', both)).toEqual({ kind: 'local', program: 'postgres' })
    const old = machine({ programs: { ...beside, postgres: 'postgres (PostgreSQL) 12.1' } })
    expect(await findService('postgres', old)).toEqual({ kind: 'local', program: DEBIAN('17') })
    const elsewhere = { '/usr/pgsql-16/bin/postgres': 'postgres (PostgreSQL) 16.1' }
    expect(await findService('postgres', machine({ programs: elsewhere }))).toEqual({
      kind: 'local',
      program: '/usr/pgsql-16/bin/postgres',
    })
  })

  it('is a container, or else installed, where there is none or an old one', async () => {
    const programs = { [DEBIAN('11')]: 'postgres (PostgreSQL) 11.22 (Debian 11.22-0+deb10u1)\n' }
    expect(await findService('postgres', machine({ programs, hasEngine: true, isDebianRoot: true }))).toEqual({
      kind: 'container',
      program: 'postgres',
      image: 'postgres:16',
    })
    const surroundings = machine({ programs, isDebianRoot: true, packages: { [DEBIAN('15')]: POSTGRES_15 } })
    expect(await findService('postgres', surroundings)).toEqual({ kind: 'local', program: DEBIAN('15') })
    expect(surroundings.installed).toEqual(['postgresql'])
  })

  it('is missing with an error that names the three ways and what is wrong with each', async () => {
    const programs = { [DEBIAN('12')]: 'postgres (PostgreSQL) 12.17\n' }
    const { message } = await rejection(findService('postgres', machine({ programs })))
    expect(message).toContain('postgres is not there')
    expect(message).toContain(`${DEBIAN('12')} is too old (postgres (PostgreSQL) 12.17)`)
    expect(message).toContain('/usr/pgsql-*/bin/postgres is not there')
    expect(message).toContain('a Docker engine, for the image postgres:16 (now: no engine answers)')
    expect(message).toContain('apt-get install postgresql (now: not root)')
  })
})

describe('a C compiler for tests', () => {
  it('goes by any of its names, and is found the same way', async () => {
    expect(await findService('compiler', machine({ programs: { gcc: 'gcc 12' } }))).toEqual({
      kind: 'local',
      program: 'gcc',
    })
    expect(await findService('compiler', machine({ hasEngine: true }))).toMatchObject({ kind: 'container' })
    const surroundings = machine({ isDebianRoot: true, packages: { cc: 'cc 12' } })
    expect(await findService('compiler', surroundings)).toEqual({ kind: 'local', program: 'cc' })
    expect(surroundings.installed).toEqual(['gcc', 'libc6-dev'])
    expect((await rejection(findService('compiler', machine({})))).message).toContain('a C compiler')
  })
})

describe('the services of this run', () => {
  it('are all there, and decided once', async () => {
    expect(Object.keys(await findServices())).toEqual(['redis', 'postgres', 'compiler'])
    expect(service('redis')).toBe(service('redis'))
  })
})
