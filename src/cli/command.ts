/** What a command is, and what it is given to run: its arguments, its output and the store that its URL names. */
import { type ConnectOptions, connect, type Holdfast } from '../index.ts'
import { type ArgumentRule, type ParsedArguments, textFlag, UsageError } from './arguments.ts'
import type { Output } from './output.ts'
import type { ProgressBar } from './progress-bar.ts'
import { hasPassword } from './text.ts'

/** 0 done, 1 failed, 2 bad usage or input. */
export type ExitCode = 0 | 1 | 2

export interface CommandContext extends ParsedArguments {
  readonly output: Output
  readonly bar: ProgressBar
  readonly env: NodeJS.ProcessEnv
  /** One line on standard error. */
  readonly warn: (line: string) => void
}

export interface Command extends ArgumentRule {
  readonly name: string
  readonly summary: string
  run(context: CommandContext): Promise<ExitCode>
}

/** An error that came up while the store was being opened: the URL or the file is at fault, not the command. */
export class OpenError extends Error {
  override readonly name = 'OpenError'
}

/** `--url`, else `HOLDFAST_URL`, else `fallback`. */
export function storeUrl({ flags, env }: CommandContext, fallback?: string): string {
  const fromEnvironment = env.HOLDFAST_URL === '' ? undefined : env.HOLDFAST_URL
  const url = textFlag(flags, 'url') ?? fromEnvironment ?? fallback
  if (url === undefined) throw new UsageError('no store: give --url URL or set HOLDFAST_URL, such as sqlite:./jobs.db')
  return url
}

/** A command that only looks or changes must not make a new store out of a mistyped path. */
export function existingOnly(url: string): string {
  const isFile = /^sqlite:(?!:memory:)/.test(url)
  return isFile && !url.includes('?') ? `${url}?mode=rw` : url
}

export async function openStore(context: CommandContext, url: string, options: ConnectOptions = {}): Promise<Holdfast> {
  const namespace = textFlag(context.flags, 'namespace')
  return opening(context, () => connect(url, namespace === undefined ? options : { ...options, namespace }))
}

/** What opens the store of the URL; what goes wrong then is an OpenError. */
export async function opening<T>(context: CommandContext, work: () => Promise<T>): Promise<T> {
  let opened: T
  try {
    opened = await work()
  } catch (cause) {
    throw new OpenError('the store could not be opened', { cause })
  }
  if (hasPassword(textFlag(context.flags, 'url') ?? '')) {
    context.warn('a password in --url is visible to other users of this machine; prefer HOLDFAST_URL')
  }
  return opened
}

/** Opens the store, runs `work` on it and closes it again, come what may. */
export async function withStore<T>(
  context: CommandContext,
  work: (store: Holdfast) => Promise<T>,
  options: { readonly mayCreate?: boolean } = {},
): Promise<T> {
  const url = storeUrl(context)
  const store = await openStore(context, options.mayCreate === true ? url : existingOnly(url))
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
