// CPU time that a server of several processes has taken, from /proc: the parent, its children, and those children that have ended.
import { readdirSync, readFileSync } from 'node:fs'

/** Of `getconf CLK_TCK`, which is 100 on every Linux of today. */
const TICK_MICROSECONDS = 10_000

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** The numbers of /proc/PID/stat after the name, which may hold spaces; the first is the parent's id. */
function stat(pid) {
  const text = read(`/proc/${pid}/stat`)
  return text === null
    ? null
    : text
        .slice(text.lastIndexOf(')') + 4)
        .split(' ')
        .map(Number)
}

/** To the nanosecond where the kernel tells, else to the tick. */
function own(pid, [, , , , , , , , , , user, system]) {
  const exact = read(`/proc/${pid}/schedstat`)
  return exact === null ? (user + system) * TICK_MICROSECONDS : Number(exact.split(' ')[0]) / 1_000
}

export function cpuMicroseconds(parent) {
  const ofParent = stat(parent)
  if (ofParent === null) throw new Error(`process ${parent} is gone`)
  const [, , , , , , , , , , , , endedUser, endedSystem] = ofParent
  let sum = own(parent, ofParent) + (endedUser + endedSystem) * TICK_MICROSECONDS
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const figures = stat(name)
    if (figures !== null && figures[0] === parent) sum += own(name, figures)
  }
  return sum
}
