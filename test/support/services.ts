/**
 * Where the servers and tools that tests need come from, decided once: a program of this machine; else a container; else, on
 * Debian as root, a package that is installed now; else an error that names the three. Never a skip: a store whose tests did not
 * run has failed them.
 *
 * Containers come before packages because they leave the machine as it was. They run in the network of the host with their
 * folders mounted at the same paths, so that ports, restarts, freezing, the clock and the power cut work as with local programs.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { containers } from './container.ts'

export type Place =
  | { readonly kind: 'local'; readonly program: string }
  | { readonly kind: 'container'; readonly program: string; readonly image: string }

export interface Services {
  readonly redis: Place
  readonly postgres: Place
  readonly compiler: Place
}

/** What the decision sees of the machine and may do to it. */
export interface Surroundings {
  /** The names in a folder; none: there is no such folder. */
  names(folder: string): Promise<readonly string[]>
  /** What `program --version` prints; null: there is no such program. */
  version(program: string): Promise<string | null>
  /** Null: containers can be run; else why not. */
  containerProblem(): Promise<string | null>
  /** Null: packages can be installed; else why not. */
  packageProblem(): Promise<string | null>
  /** Without starting any service of the system. */
  install(packages: readonly string[]): Promise<void>
}

interface Need {
  readonly what: string
  /** A folder in a path may be a pattern: `*` stands for a version, and the newest comes first. */
  readonly programs: readonly string[]
  /** Null: good; else what is wrong with it. */
  problem(version: string): string | null
  readonly image: string
  readonly packages: readonly string[]
}

const OLDEST_REDIS = 7
const OLDEST_POSTGRES = 13

const NEEDS: Readonly<Record<keyof Services, Need>> = {
  redis: {
    what: 'a Redis server of version 7 or later',
    programs: ['redis-server', 'valkey-server'],
    problem: (version) => {
      const major = Number(/\bv=(\d+)\./.exec(version)?.[1])
      return major >= OLDEST_REDIS ? null : `is too old (${version.slice(0, 40)})`
    },
    image: 'redis:7',
    packages: ['redis-server'],
  },
  postgres: {
    what: 'a PostgreSQL server of version 13 or later',
    // Systems that keep several versions leave them off the PATH.
    programs: [
      'postgres',
      '/usr/lib/postgresql/*/bin/postgres',
      '/usr/pgsql-*/bin/postgres',
      '/opt/homebrew/opt/postgresql@*/bin/postgres',
    ],
    problem: (version) => {
      const major = Number(/\(PostgreSQL\) (\d+)/.exec(version)?.[1])
      return major >= OLDEST_POSTGRES ? null : `is too old (${version.slice(0, 40).trim()})`
    },
    image: 'postgres:16',
    packages: ['postgresql'],
  },
  compiler: {
    what: 'a C compiler (it builds the clock and the power cut that tests load into servers)',
    programs: ['cc', 'gcc', 'clang'],
    problem: () => null,
    image: 'gcc:13',
    packages: ['gcc', 'libc6-dev'],
  },
}

/** The first way that works; throws an error that says for each why it does not. */
export async function findService(name: keyof Services, surroundings: Surroundings): Promise<Place> {
  const need = NEEDS[name]
  const local = await findLocal(need, surroundings)
  if (typeof local !== 'string') return local
  const noContainer = await surroundings.containerProblem()
  if (noContainer === null) return { kind: 'container', program: need.programs[0] ?? '', image: need.image }
  const noPackage = (await surroundings.packageProblem()) ?? (await installProblem(need, surroundings))
  if (noPackage === null) {
    const installed = await findLocal(need, surroundings)
    if (typeof installed !== 'string') return installed
    throw missing(need, { local, noContainer, noPackage: `was installed, and then: ${installed}` })
  }
  throw missing(need, { local, noContainer, noPackage })
}

async function findLocal({ programs, problem }: Need, surroundings: Surroundings): Promise<Place | string> {
  const problems: string[] = []
  for (const name of programs) {
    const found = await matches(name, surroundings)
    if (found.length === 0) problems.push(`${name} is not there`)
    for (const program of found) {
      const version = await surroundings.version(program)
      const wrong = version === null ? 'is not there' : problem(version)
      if (wrong === null) return { kind: 'local', program }
      problems.push(`${program} ${wrong}`)
    }
  }
  return problems.join(', ')
}

/** The paths that a pattern stands for, by the number that `*` stands for, highest first. */
async function matches(pattern: string, surroundings: Surroundings): Promise<readonly string[]> {
  const [, folder, before, after, rest] = /^(.*\/)([^/*]*)\*([^/]*)\/(.*)$/.exec(pattern) ?? []
  if (folder === undefined || before === undefined || after === undefined || rest === undefined) return [pattern]
  const names = await surroundings.names(folder)
  const numberOf = (name: string): number => Number.parseFloat(name.slice(before.length))
  return names
    .filter((name) => name.startsWith(before) && name.endsWith(after) && numberOf(name) > 0)
    .sort((a, b) => numberOf(b) - numberOf(a))
    .map((name) => join(folder, name, rest))
}

async function installProblem({ packages }: Need, surroundings: Surroundings): Promise<string | null> {
  try {
    await surroundings.install(packages)
    return null
  } catch (error) {
    return `failed: ${error instanceof Error ? error.message : String(error)}`
  }
}

interface Problems {
  readonly local: string
  readonly noContainer: string
  readonly noPackage: string
}

function missing({ what, programs, image, packages }: Need, { local, noContainer, noPackage }: Problems): Error {
  return new Error(
    [
      `The tests need ${what}. Any of these gives it to them:`,
      `1. ${programs[0]} on the PATH (now: ${local});`,
      `2. a Docker engine, for the image ${image} (now: ${noContainer});`,
      `3. Debian or Ubuntu as root, for apt-get install ${packages.join(' ')} (now: ${noPackage}).`,
    ].join('\n'),
  )
}

const run = promisify(execFile)
const POLICY = '/usr/sbin/policy-rc.d'

const thisMachine: Surroundings = {
  names: (folder) => readdir(folder).catch(() => []),
  version: async (program) => {
    try {
      return (await run(program, ['--version'])).stdout
    } catch {
      return null
    }
  },
  containerProblem: async () => {
    try {
      await containers().getContainerRuntimeClient()
      return null
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  },
  packageProblem: async () => {
    if (!existsSync('/etc/debian_version')) return 'this is neither'
    return process.getuid?.() === 0 ? null : 'not root'
  },
  install: async (packages) => {
    // Asked by Debian's packages before they start a service; 101 forbids it.
    const isOurs = !existsSync(POLICY)
    if (isOurs) await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      await run('apt-get', ['update', '-q'], { env })
      await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...packages], { env })
    } finally {
      if (isOurs) await rm(POLICY, { force: true })
    }
  },
}

/** Set by the test command once it has decided, for all processes of the run. */
const DECIDED = 'HOLDFAST_TEST_SERVICES'

const found = new Map<keyof Services, Promise<Place>>()

/** Where this run takes a service from. */
export function service(name: keyof Services): Promise<Place> {
  const decided = process.env[DECIDED]
  const place =
    found.get(name) ??
    (decided === undefined ? findService(name, thisMachine) : Promise.resolve((JSON.parse(decided) as Services)[name]))
  found.set(name, place)
  return place
}

/** Decides for the whole run. */
export async function findServices(surroundings: Surroundings = thisMachine): Promise<Services> {
  return {
    redis: await findService('redis', surroundings),
    postgres: await findService('postgres', surroundings),
    compiler: await findService('compiler', surroundings),
  }
}
