/**
 * A copy of any value as bounded plain data, without running code of the value: no getter, `toJSON`, `toString` or iterator is
 * called. What cannot be read so, or is too deep or too much, is replaced by a word for it. Used where foreign values are shown,
 * such as thrown objects and the fields of log lines; never to keep a value unchanged, see `backends/codec.ts`.
 */

export interface PlainLimits {
  /** Levels of objects in objects. */
  readonly depth: number
  /** Values in all. */
  readonly parts: number
  /** UTF-16 units of one text. */
  readonly chars: number
  /** Of all texts together, names included; without it only the others count. */
  readonly allChars?: number
}

/** `text`, well-formed and no longer than `chars`; one that was cut ends with an ellipsis. */
function boundedText(text: string, chars: number): string {
  const cut = text.length > chars ? `${text.slice(0, chars - 1)}…` : text
  return cut.toWellFormed()
}

const ELLIPSIS_BYTES = 3

/** The same by bytes of UTF-8. */
export function boundedBytes(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text.toWellFormed()
  const encoded = Buffer.from(text.slice(0, bytes + 1))
  if (encoded.byteLength <= bytes) return text.toWellFormed()
  let end = bytes - ELLIPSIS_BYTES
  // Not in the middle of a character.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return `${encoded.toString('utf8', 0, end)}…`
}

/** The value of a property that is plain data; undefined when a getter or a trap would have to run, or it is not there. */
function ownData(value: object, key: string): unknown {
  try {
    return Object.getOwnPropertyDescriptor(value, key)?.value
  } catch {
    return undefined
  }
}

const dateText = (date: Date): string => {
  const ms = Date.prototype.getTime.call(date)
  return Number.isNaN(ms) ? 'Invalid Date' : new Date(ms).toISOString()
}

/** `errors` says how an error inside the value is shown; without it, like every object. */
export function toPlain(
  value: unknown,
  limits: PlainLimits,
  errors: ((error: Error) => unknown) | null = null,
): unknown {
  return new Copy(limits, errors).of(value, 0)
}

/** What a value of the copy takes beside its text, about. */
const PART_BYTES = 16

/** The same, and about how many bytes the copy has. */
export function measuredPlain(
  value: unknown,
  limits: PlainLimits,
  errors: (error: Error) => unknown,
): { readonly plain: unknown; readonly size: number } {
  const copy = new Copy(limits, errors)
  const plain = copy.of(value, 0)
  return { plain, size: copy.chars + copy.parts * PART_BYTES }
}

class Copy {
  private readonly limits: PlainLimits
  private readonly errors: ((error: Error) => unknown) | null
  private left: number
  /** UTF-16 units copied so far. */
  chars = 0

  constructor(limits: PlainLimits, errors: ((error: Error) => unknown) | null) {
    this.limits = limits
    this.errors = errors
    this.left = limits.parts
  }

  get parts(): number {
    return this.limits.parts - this.left
  }

  private text(value: string): string {
    const { chars, allChars } = this.limits
    const text = boundedText(
      value,
      allChars === undefined ? chars : Math.max(1, Math.min(chars, allChars - this.chars)),
    )
    this.chars += text.length
    // Nothing more is looked at.
    if (allChars !== undefined && this.chars >= allChars) this.left = Math.min(this.left, 0)
    return text
  }

  of(value: unknown, depth: number): unknown {
    this.left -= 1
    switch (typeof value) {
      case 'string':
        return this.text(value)
      case 'number':
        return Number.isFinite(value) ? value : String(value)
      case 'boolean':
        return value
      case 'undefined':
        return undefined
      case 'object':
        return value === null ? null : this.guarded(value, depth)
      case 'bigint':
        return this.text(String(value))
      default:
        return `[${typeof value}]`
    }
  }

  /** Traps of a proxy are code too; one that throws, or was revoked, is not looked into. */
  private guarded(value: object, depth: number): unknown {
    try {
      return this.ofObject(value, depth)
    } catch {
      return '[unreadable]'
    }
  }

  private ofObject(value: object, depth: number): unknown {
    if (value instanceof Date) return dateText(value)
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    if (this.errors !== null && value instanceof Error) return this.of(this.errors(value), depth)
    if (depth >= this.limits.depth) return Array.isArray(value) ? '[array]' : '[object]'
    if (Array.isArray(value)) return this.ofArray(value, depth)
    const copy: Record<string, unknown> = Object.create(null)
    for (const key of Object.keys(value)) {
      if (this.left <= 0) {
        copy['…'] = '[more]'
        break
      }
      const property = Object.getOwnPropertyDescriptor(value, key)
      copy[this.text(key)] =
        property !== undefined && 'value' in property ? this.of(property.value, depth + 1) : '[getter]'
    }
    return copy
  }

  private ofArray(value: readonly unknown[], depth: number): unknown {
    const copy: unknown[] = []
    for (let index = 0; index < value.length; index += 1) {
      if (this.left <= 0) {
        copy.push('[more]')
        break
      }
      copy.push(this.of(ownData(value, String(index)), depth + 1) ?? null)
    }
    return copy
  }
}
