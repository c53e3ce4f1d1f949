import { describe, expect, it } from 'vitest'
import { mayColour, Output } from '#dist/src/cli/output.js'
import { ProgressBar } from '#dist/src/cli/progress-bar.js'

function capture(options: { readonly hasColour?: boolean; readonly isJson?: boolean } = {}) {
  let text = ''
  const write = (more: string): void => {
    text += more
  }
  const { hasColour = false, isJson = false } = options
  return { output: new Output({ isJson, isTerminal: hasColour, hasColour, write }), read: () => text }
}

const ID = 'mail/01JDY5ABCDEFGHJKMNPQRSTVWX'
const ESC = '\u001b'

describe('output', () => {
  it('highlights the end of an id and shows it whole', () => {
    const { output, read } = capture({ hasColour: true })
    output.line({ text: ID, style: 'id' })
    expect(read()).toBe(`mail/01JDY5ABCDEFGHJKMNPQ${ESC}[36mRSTVWX${ESC}[39m\n`)
  })

  it('writes no escape without colour', () => {
    const { output, read } = capture()
    output.table(
      ['JOB', 'N'],
      [
        [
          { text: ID, style: 'id' },
          { text: '12', style: 'red' },
        ],
      ],
    )
    expect(read()).toBe(
      `JOB                               N\n${ID}   12\n`
        .replace('   12', '  12')
        .replace(/ +N/, '                               N'),
    )
    expect(read()).not.toContain(ESC)
  })

  it('lets nothing stored forge a line or a colour', () => {
    const { output, read } = capture()
    output.table(['TYPE'], [[`evil\n${ESC}[2Jjob`]])
    expect(read()).toBe('TYPE\nevil job\n')
  })

  it('prints one JSON object in place of everything else', () => {
    const { output, read } = capture({ isJson: true })
    output.result({ a: 1, text: `x${ESC}[1m` }, () => output.line('never'))
    expect(read().trimEnd().split('\n')).toHaveLength(1)
    expect(JSON.parse(read())).toEqual({ a: 1, text: `x${ESC}[1m` })
    expect(read()).not.toContain(ESC)
  })

  it.each([
    [{ isTTY: true }, {}, true],
    [{ isTTY: true }, { NO_COLOR: '1' }, false],
    [{ isTTY: true }, { NO_COLOR: '' }, true],
    [{ isTTY: true }, { TERM: 'dumb' }, false],
    [{}, {}, false],
  ])('colours %j with %j: %s', (stream, env, expected) => expect(mayColour(stream, env)).toBe(expected))
})

describe('progress bar', () => {
  const draw = (isTTY: boolean, env: NodeJS.ProcessEnv = {}): string => {
    let text = ''
    const stream = { isTTY, columns: 80, write: (more: string) => (text += more) }
    const bar = new ProgressBar(stream, env, () => 1_000)
    bar.update({ done: 50, total: 100, note: `on it${ESC}[2J` })
    bar.update({ done: 51, total: 100, note: 'too soon to draw again' })
    bar.clear()
    return text
  }

  it('draws and wipes one line on a terminal', () => {
    const text = draw(true, { NO_COLOR: '1' })
    expect(text).toBe(`\r${ESC}[2K${'█'.repeat(14)}${'░'.repeat(14)} 50 of 100  on it\r${ESC}[2K`)
  })

  it('says nothing elsewhere', () => expect(draw(false)).toBe(''))
})
