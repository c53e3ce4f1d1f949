/** Holds the rules of style that a machine can hold: import directions, sizes, names, comments, forbidden globals. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

const source = [...filesBelow('src', '.ts'), ...filesBelow('workers', '.ts')]
const tests = filesBelow('test', '.ts')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

interface Import {
  readonly from: string
  readonly to: string
  readonly isType: boolean
}

const IMPORT = /^(?:import|export)\s+(type\s)?[^'"]*?from\s+'([^']+)'|import\('([^']+)'\)/gm

function importsOf(file: string): Import[] {
  return [...read(file).matchAll(IMPORT)].map(([, type, from, dynamic]) => {
    const target = from ?? dynamic ?? ''
    const to = target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target
    return { from: file, to, isType: type !== undefined }
  })
}

const imports = source.flatMap(importsOf)

/** Lower layers first; a file may import its own layer and those before it. */
const LAYERS: readonly (readonly [string, RegExp])[] = [
  [
    'leaf',
    /^src\/(job|errors|failure|clock|deadlines|random|config|contract|isolation|log-fields|plain-data|roster|retention|telemetry|version|worker-file)\.ts$|^src\/manifest\.d\.ts$|^src\/actors\/job-machine\.ts$/,
  ],
  ['lua', /^src\/lua\//],
  ['backends', /^src\/backends\//],
  ['transactions', /^src\/transactions\//],
  ['actors', /^src\/actors\//],
  [
    'client',
    /^src\/(announcement|attempt-fields|blockers|explain-context|client|connect-options|runtime|engine|worker|worker-events|enqueue|enqueue-refusal|enqueue-tx|explain|job-handle|job-operations|job-requests|result-waiters|result-hints|result-outcome|job-logs|lane-policy|migrate|store-operations|worker-health|worker-list)\.ts$/,
  ],
  ['index', /^src\/index\.ts$/],
  ['cli', /^src\/cli\//],
  // Where threads begin: it imports workers, and nothing imports it.
  ['entry', /^src\/holdfast-worker\.ts$/],
]

const ENTRY = 'src/holdfast-worker.ts'

const layerOf = (file: string): number => LAYERS.findIndex(([, pattern]) => pattern.test(file))

/** Who alone may import a package. */
const OWNERS: Readonly<Record<string, RegExp>> = {
  ioredis: /^src\/backends\/redis\//,
  'cluster-key-slot': /^src\/backends\/redis\//,
  pg: /^src\/backends\/postgres\//,
  'better-sqlite3': /^src\/backends\/sqlite\//,
  piscina: /^src\/actors\/(pool-actor|thread-\w+)\.ts$/,
  xstate: /^src\/actors\/(job-machine|lifecycle)\.ts$/,
  croner: /^src\/actors\/scheduler\.ts$/,
  'rendezvous-hash': /^src\/partitions\/rendezvous\.ts$/,
  pino: /^src\/telemetry\.ts$/,
  tinyqueue: /^src\/backends\/memory\/row-queue\.ts$/,
  '@msgpack/msgpack': /^src\/backends\/codec\.ts$/,
}

describe('imports', () => {
  test('every source file belongs to a layer', () => {
    expect(
      source.filter((file) => file.startsWith('src/') && !file.startsWith('src/partitions/') && layerOf(file) === -1),
    ).toEqual([])
  })

  test('go one way', () => {
    const wrong = imports.filter(
      ({ from, to }) => to.startsWith('src/') && from.startsWith('src/') && layerOf(to) > layerOf(from),
    )
    expect(wrong.map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
  })

  test('of workers stay apart from the engine', () => {
    const allowed = /^src\/(errors|failure|config|clock|plain-data|log-fields)\.ts$/
    // Threads that host a part of a store are parts of the backends.
    const hosted: Readonly<Record<string, RegExp>> = {
      'workers/sqlite-store.ts': /^src\/(backends\/(sqlite\/|lease-stand-in)|clock|random)/,
      'workers/lease-keeper.ts': /^src\/(backends\/(lease-stand-in|(redis|postgres)\/renewer)|clock|random)\b/,
    }
    const wrong = imports.filter(({ from, to, isType }) => {
      if (!from.startsWith('workers/') || !to.startsWith('src/') || isType) return false
      return !allowed.test(to) && hosted[from]?.test(to) !== true
    })
    expect(wrong.map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
    const back = imports.filter(
      ({ from, to, isType }) => from.startsWith('src/') && from !== ENTRY && to.startsWith('workers/') && !isType,
    )
    expect(back.map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
    expect(imports.filter(({ to }) => to === ENTRY)).toEqual([])
  })

  test('of packages happen in one place each', () => {
    const wrong = imports.filter(({ from, to }) => {
      const owner = Object.entries(OWNERS).find(([name]) => to === name || to.startsWith(`${name}/`))
      return owner !== undefined && !owner[1].test(from)
    })
    expect(wrong.map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
  })

  test('of the command line see the public API only', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        from.startsWith('src/cli/') && to.startsWith('src/') && !to.startsWith('src/cli/') && to !== 'src/index.ts',
    )
    expect(wrong.map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
  })

  test('have no cycles between files', () => {
    const edges = new Map<string, string[]>()
    for (const { from, to, isType } of imports)
      if (!isType && to.endsWith('.ts')) edges.set(from, [...(edges.get(from) ?? []), to])
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
      if (done.has(file) || path.includes(file)) return
      for (const next of edges.get(file) ?? []) visit(next, [...path, file])
      done.add(file)
    }
    for (const file of edges.keys()) visit(file, [])
    expect(cycles).toEqual([])
  })
})

describe('the engine', () => {
  const engine = source.filter(
    (file) =>
      /^src\/(actors|backends|lua|partitions)\//.test(file) ||
      /^src\/(announcement|attempt-fields|blockers|explain-context|client|connect-options|runtime|engine|worker|worker-events|enqueue|enqueue-tx|explain|job-handle|job-operations|job-requests|result-waiters|result-hints|result-outcome|job-logs|migrate|store-operations|worker-health|worker-list)\.ts$/.test(
        file,
      ),
  )
  // The thread side of SQLite waits for locks in real time; it is handed its clock like everything else.
  const forbidden =
    /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bperformance\b|\bprocess\.hrtime\b|\brandomUUID\b|\brandomBytes\b/

  test('takes clock, random and timers from outside', () => {
    const wrong = engine.flatMap((file) =>
      codeLines(file)
        .filter((line) => forbidden.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    )
    expect(wrong).toEqual([])
  })
})

/** The lines of a file without comments. */
function codeLines(file: string): string[] {
  return read(file)
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .split('\n')
    .map((line) => line.replace(/(^|\s)\/\/.*$/, ''))
}

describe('a bundle', () => {
  test('is all there is at run time: no file is found by the place of another, but the one where threads begin', () => {
    const places = /\bimport\.meta\b|\b__(?:dir|file)name\b/
    const finding = source.filter((file) => !file.startsWith('src/cli/') && places.test(codeLines(file).join('\n')))
    // The first only names it in what it tells the caller.
    expect(finding).toEqual(['src/contract.ts', 'src/worker-file.ts'])
  })
})

describe('sizes', () => {
  test('files stay small', () => {
    const wrong = [...source.map((file) => [file, 350] as const), ...tests.map((file) => [file, 500] as const)]
      .map(([file, limit]) => ({ file, limit, lines: read(file).split('\n').length - 1 }))
      .filter(({ lines, limit }) => lines > limit)
    expect(wrong).toEqual([])
  })

  test('functions stay small', () => {
    expect(source.flatMap((file) => longFunctions(file, 60))).toEqual([])
  })

  test('classes have at most 12 public members', () => {
    expect(source.flatMap(crowdedClasses)).toEqual([])
  })
})

const FUNCTION_START =
  /^(\s*)(?:export )?(?:async )?function\s+(\w+)|^(\s*)(?:private |protected |override |static |async )*(#?\w+)\([^)]*\)[^;=]*\{$/

function longFunctions(file: string, limit: number): string[] {
  const lines = read(file).split('\n')
  return lines.flatMap((line, start) => {
    const match = FUNCTION_START.exec(line)
    if (match === null) return []
    const indent = match[1] ?? match[3] ?? ''
    const length =
      lines.slice(start + 1).findIndex((next) => next === `${indent}}` || next.startsWith(`${indent}} `)) + 1
    return length > limit ? [`${file}:${start + 1} ${match[2] ?? match[4]} (${length} lines)`] : []
  })
}

function crowdedClasses(file: string): string[] {
  return [...read(file).matchAll(/^(?:export )?(?:abstract )?class (\w+)[\s\S]*?^}/gm)].flatMap(([body, name]) => {
    const members = new Set(
      [
        ...body.matchAll(
          /^ {2}(?!private |protected |#|constructor|static |\/|\*|})(?:override |readonly |async |get |set |abstract )*(\w+)[(:?<=]/gm,
        ),
      ].map(([, member]) => member),
    )
    const isData = !/^ {2}(?!private |protected |constructor|#)(?:async )?\w+\(/m.test(body)
    return members.size > 12 && !isData && !body.includes('implements JobContext')
      ? [`${file} ${name}: ${members.size}`]
      : []
  })
}

describe('words', () => {
  test('every source file opens with a comment on what it owns', () => {
    expect(source.filter((file) => !/^(#!.*\n)?\/\*\*/.test(read(file)))).toEqual([])
  })

  test('no open work, no way around the types, no focused or skipped test', () => {
    const pattern = /\b(TODO|FIXME|XXX)\b|@ts-ignore|@ts-expect-error|\bas any\b|: any\b/
    const focused = /\b(it|test|describe)\.(only|skip|todo|skipIf)\b/
    const wrong = [
      ...source.filter((file) => pattern.test(codeLines(file).join('\n'))),
      ...tests.filter((file) => file !== 'test/tidy.test.ts' && focused.test(read(file))),
    ]
    expect(wrong).toEqual([])
  })

  test('file and folder names are kebab-case, and no folder is a drawer', () => {
    const wrong = [...source, ...tests].filter(
      (file) =>
        !file.split('/').every((part) => /^[a-z0-9]+([.-][a-z0-9]+)*$/.test(part)) ||
        /(^|\/)(utils?|common|helpers?|(?<!test\/)types|interfaces)\//.test(file),
    )
    expect(wrong).toEqual([])
  })

  test('barrel files are two', () => {
    expect(source.filter((file) => file.endsWith('/index.ts'))).toEqual([
      'src/backends/protocol/index.ts',
      'src/index.ts',
    ])
  })
})

describe('the protocol', () => {
  test('has at most 25 messages', () => {
    const messages = filesBelow('src/backends/protocol', '.ts').flatMap((file) =>
      [...read(file).matchAll(/^ {2}'([a-z]+\.[a-z]+)': \{/gm)].map(([, name]) => name),
    )
    expect(messages.length).toBeGreaterThan(10)
    expect(messages.length).toBeLessThanOrEqual(25)
  })
})
