/** What the URLs of all servers have in common: how they are taken apart, and how one is refused without repeating its password. */
import { HoldfastError } from '../errors.ts'

export function refuseUrl(problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('INVALID_URL', `url: ${problem}`, { details: { field: 'url' }, cause })
}

export interface UrlParts {
  readonly userinfo: string | undefined
  readonly hosts: string
  readonly path: string
  readonly query: string
}

/** Takes what follows `://`. A password may hold any character but those that end the part; the last `@` divides, as lenient parsers do. */
export function splitUrl(rest: string): UrlParts {
  if (rest.includes('#')) throw refuseUrl("'#' must be written %23")
  const question = rest.indexOf('?')
  const before = question === -1 ? rest : rest.slice(0, question)
  const slash = before.indexOf('/', before.lastIndexOf('@') + 1)
  const authority = slash === -1 ? before : before.slice(0, slash)
  const at = authority.lastIndexOf('@')
  return {
    userinfo: at === -1 ? undefined : authority.slice(0, at),
    hosts: authority.slice(at + 1),
    path: slash === -1 ? '' : before.slice(slash + 1),
    query: question === -1 ? '' : rest.slice(question + 1),
  }
}

export function decodeUrlPart(text: string, part: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refuseUrl(`${part} has a '%' that is no escape; write it %25`)
  }
}
