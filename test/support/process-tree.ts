/**
 * Signals for a server and all the processes that it has started, such as a PostgreSQL server, which has one for each connection.
 * The first is stopped before the others are looked for, so that it neither starts new ones nor mourns those that are killed.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { lookFor } from './look.ts'

export type TreeSignal = 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'

interface Running {
  readonly pid: number
  readonly parent: number
  /** One letter: T is stopped, Z has ended and nobody has taken notice. */
  readonly state: string
}

/** Resolves once the signal has done its work: all stopped, all running or all gone. */
export async function signalTree(pid: number, name: TreeSignal): Promise<void> {
  if (name === 'SIGCONT') {
    for (const child of await childrenOf(pid)) send(child, name)
    send(pid, name)
    return
  }
  await stop(pid)
  const children = await childrenOf(pid)
  if (name === 'SIGSTOP') {
    await Promise.all(children.map(stop))
    return
  }
  for (const one of [...children, pid]) send(one, name)
  await lookFor('the end of all processes of a server', async () =>
    (await areGone([...children, pid])) ? true : undefined,
  )
}

/** Refuses pids that are not of this server. */
export async function signalChild(parent: number, pid: number, name: NodeJS.Signals): Promise<void> {
  if (!(await childrenOf(parent)).includes(pid)) throw new Error(`process ${pid} was not started by ${parent}`)
  send(pid, name)
}

export async function childrenOf(parent: number): Promise<number[]> {
  return (await running()).flatMap((one) => (one.parent === parent && one.state !== 'Z' ? one.pid : []))
}

async function stop(pid: number): Promise<void> {
  send(pid, 'SIGSTOP')
  await lookFor('a stopped process', async () => {
    const found = (await running()).find((one) => one.pid === pid)
    return found === undefined || found.state === 'T' || found.state === 'Z' ? true : undefined
  })
}

/** Ended, whether or not anybody has taken notice. */
export async function areGone(pids: readonly number[]): Promise<boolean> {
  return !(await running()).some(({ pid, state }) => pids.includes(pid) && state !== 'Z')
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It ended by itself meanwhile.
  }
}

async function running(): Promise<Running[]> {
  if (!existsSync('/proc/self/stat')) return runningByPs()
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(names.map((name) => readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')))
  return stats.flatMap((stat, n) => {
    // The name of the program stands in brackets and may hold anything.
    const [, state, parent] = /^.*\) (\w) (\d+) /s.exec(stat) ?? []
    return state === undefined ? [] : { pid: Number(names[n]), parent: Number(parent), state }
  })
}

async function runningByPs(): Promise<Running[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,state='])
  return [...stdout.matchAll(/^\s*(\d+)\s+(\d+)\s+(\w)/gm)].map(([, pid, parent, state = '']) => ({
    pid: Number(pid),
    parent: Number(parent),
    state,
  }))
}
