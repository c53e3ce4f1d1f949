/** A worker as one text, the way stores keep it. What cannot be read, such as one of a later release, is left out and harms nobody. */
import type { SeenWorker, WorkerBeat } from './protocol/index.ts'

export function writeWorker({ id: _id, ...info }: WorkerBeat): string {
  return JSON.stringify(info)
}

const isText = (value: unknown): value is string => typeof value === 'string'
const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter(isText) : [])
const count = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)

/** A list of one, or of none. */
export function readWorker(id: string, text: string, beatAgoMs: number): readonly SeenWorker[] {
  let info: Readonly<Record<string, unknown>> | null
  try {
    info = JSON.parse(text)
  } catch {
    return []
  }
  if (typeof info !== 'object' || info === null) return []
  return [
    {
      id,
      lanes: texts(info.lanes),
      types: texts(info.types),
      moreTypes: count(info.moreTypes),
      moreLanes: count(info.moreLanes),
      concurrency: count(info.concurrency),
      running: count(info.running),
      isStopping: info.isStopping === true,
      host: isText(info.host) ? info.host : '',
      pid: count(info.pid),
      upMs: count(info.upMs),
      nodeVersion: isText(info.nodeVersion) ? info.nodeVersion : '',
      version: isText(info.version) ? info.version : '',
      beatAgoMs: Math.max(0, beatAgoMs),
    },
  ]
}
