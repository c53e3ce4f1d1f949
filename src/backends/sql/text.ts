/** The texts of a store's `.sql` files, as the build has made a module of them. */
import { HoldfastError } from '../../errors.ts'

/** By the path of the file, such as `statement/job_add.sql`. */
export type Texts = Readonly<Record<string, string>>

/** Throws INTERNAL when there is no such file. */
export function textAt(texts: Texts, path: string): string {
  const text = texts[path]
  if (text === undefined) throw new HoldfastError('INTERNAL', `${path}: there is no such file in this build`)
  return text
}
