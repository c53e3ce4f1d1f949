// The `.lua` and `.sql` files as a module of texts for each folder that has some: `texts.js` in dist/, which the loaders import. Texts are
// encoded as JSON and never as template literals, in which a backslash, a backtick or `${` would change them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const FOLDERS = ['src/backends/postgres', 'src/backends/sqlite', 'src/lua']
const BEFORE = '// Made by scripts/texts.mjs: the files of this folder in src/.\nexport const TEXTS = '
const ENDING = /\.(lua|sql)$/

const moduleOf = (texts) => `${BEFORE}${JSON.stringify(texts, null, 1)}\n`

/** Writes the modules into a dist/ from the files under `root`. */
export function writeTexts(root, dist) {
  for (const folder of FOLDERS) {
    const paths = readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .map((path) => path.replaceAll('\\', '/'))
      .filter((path) => ENDING.test(path))
      .sort()
    const texts = Object.fromEntries(paths.map((path) => [path, readFileSync(`${root}${folder}/${path}`, 'utf8')]))
    writeFileSync(`${dist}/${folder}/texts.js`, moduleOf(texts))
  }
}

function textsOf(dist, file) {
  const folder = FOLDERS.find((each) => file.startsWith(`${each}/`))
  if (folder === undefined || !ENDING.test(file)) return null
  const module = `${dist}/${folder}/texts.js`
  return {
    module,
    key: file.slice(folder.length + 1),
    texts: JSON.parse(readFileSync(module, 'utf8').slice(BEFORE.length)),
  }
}

/** A file as a dist/ has it: a `.lua` or `.sql` file out of its module. */
export function readBuilt(dist, file) {
  const found = textsOf(dist, file)
  return found === null ? readFileSync(`${dist}/${file}`, 'utf8') : (found.texts[found.key] ?? '')
}

/** Puts another text in its place. */
export function writeBuilt(dist, file, text) {
  const found = textsOf(dist, file)
  if (found === null) writeFileSync(`${dist}/${file}`, text)
  else writeFileSync(found.module, moduleOf({ ...found.texts, [found.key]: text }))
}
