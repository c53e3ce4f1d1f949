/** Processes that tests start, stop, freeze and kill, each told which store to open. Speaks lines of text with them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { within } from './event.ts'

const SCRIPTS = new URL('./children/', import.meta.url)

export class Child {
  readonly exited: Promise<void>
  readonly lines: string[] = []
  readonly #process: ChildProcess
  readonly #errors: string[] = []
  #waiters: (() => void)[] = []
  #hasExited = false

  constructor(script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const path = fileURLToPath(new URL(script, SCRIPTS))
    this.#process = spawn(process.execPath, [path, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    const { stdout, stderr } = this.#process
    if (stdout === null || stderr === null) throw new Error('the child has no pipes')
    createInterface({ input: stdout }).on('line', (line) => {
      this.lines.push(line)
      this.#changed()
    })
    stderr.on('data', (text) => this.#errors.push(String(text)))
    this.#process.stdin?.on('error', () => {}) // It may be killed while we write.
    this.exited = new Promise((resolve) => {
      this.#process.once('exit', () => {
        this.#hasExited = true
        this.#changed()
        resolve()
      })
    })
  }

  #changed(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const wake of waiters) wake()
  }

  /** What it wrote to standard error. */
  get errors(): string {
    return this.#errors.join('')
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  /** The first line that starts with `start`, whenever it came. */
  line(start: string): Promise<string> {
    const found = async (): Promise<string> => {
      for (;;) {
        const line = this.lines.find((each) => each.startsWith(start))
        if (line !== undefined) return line
        if (this.#hasExited) throw new Error(`the child ended without '${start}': ${this.#errors.join('')}`)
        await new Promise<void>((resolve) => {
          this.#waiters.push(resolve)
        })
      }
    }
    return within(found(), `line '${start}' of a child, which said: ${this.#errors.join('')}`, 15_000)
  }

  tell(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    if (!this.#hasExited) this.#process.kill(name)
  }

  async kill(): Promise<void> {
    if (!this.#hasExited) this.#process.kill('SIGKILL')
    await this.exited
  }
}
