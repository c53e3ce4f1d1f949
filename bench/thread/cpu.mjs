// The handler module of jobs that compute for 50 ms; bare piscina calls it as well.
const WORK_MS = 50

export default function cpu() {
  const until = performance.now() + WORK_MS
  let sum = 0
  while (performance.now() < until) for (let n = 0; n < 1_000; n += 1) sum += Math.sqrt(n)
  return sum > 0
}
