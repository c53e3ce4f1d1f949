/** Pages that are made from the code are up to date; pages that name tests name ones that exist. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadCatalog } from '#dist/src/lua/catalog.js'

const root = fileURLToPath(new URL('..', import.meta.url))

test('generated pages are up to date', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/generate-docs.mjs'), '--check'], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

test('every guarantee of docs/semantics.md names a test that exists', () => {
  const text = readFileSync(join(root, 'docs/semantics.md'), 'utf8')
  const named = [...text.matchAll(/`(test\/[^`]+?\.(?:ts|mjs))`(?: \(([^)]+)\))?/g)]
  expect(named.length).toBeGreaterThan(20)
  const missing = named.filter(([, file = '', titles]) => {
    if (!existsSync(join(root, file))) return true
    const source = readFileSync(join(root, file), 'utf8')
    return (titles ?? '')
      .split(', ')
      .some((title) => /^\d+$/.test(title) && !new RegExp(`['"\`]${title} `).test(source))
  })
  expect(missing.map(([whole]) => whole)).toEqual([])
})

test('links between pages lead somewhere', () => {
  const pages = [
    'README.md',
    'CHANGELOG.md',
    ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', name)),
  ]
  const broken = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(root, page, '..', target)))
      .map((target) => `${page}: ${target}`),
  )
  expect(broken).toEqual([])
})

test('docs/keyspace.md describes every key that the scripts are given, and no other', () => {
  const text = readFileSync(join(root, 'docs/keyspace.md'), 'utf8')
  const table = text.slice(text.indexOf('## Keys of a lane'), text.indexOf('<!-- keys'))
  const described = [...table.matchAll(/^\| `(\w+)` \| (hash|list|sorted set) \|/gm)].map(([, role]) => role)
  const ofNamespace = ['lanes', 'wake', 'keyspace', 'lock', 'workers', 'beats']
  const used = Object.values(loadCatalog())
    .flatMap(({ keys }) => keys)
    .filter((role) => !role.startsWith('...') && !ofNamespace.includes(role))
  expect(described).toEqual([...new Set(described)])
  expect([...described].sort()).toEqual([...new Set(used)].sort())
  for (const role of ofNamespace) expect(text).toMatch(new RegExp(`\`hf:\\{NS\\}:(keyspace:)?${role}\\b`))
})
