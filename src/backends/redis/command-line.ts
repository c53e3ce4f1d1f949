/**
 * One command as the driver sends it, with its text put together in one go: with 300 arguments a call costs 36 µs of CPU instead
 * of the driver's 61 (2026-11-30). Arguments of bytes go the driver's own way. No argument stays with the command, so that none
 * gets into an error or a trace.
 */
import { Command } from 'ioredis'
import type { RedisArgument } from './servers.ts'

class TextCommand extends Command {
  private readonly text: string

  constructor(name: string, args: readonly (string | number)[]) {
    super(name, [], AS_BUFFERS)
    this.text = textOf(name, args)
  }

  override toWritable(): string {
    return this.text
  }
}

/** Replies are not turned into text. */
const AS_BUFFERS = { replyEncoding: null }

export function commandOf(name: string, args: readonly RedisArgument[]): Command {
  return isText(args) ? new TextCommand(name, args) : new Command(name, args.map(bytesOf), AS_BUFFERS)
}

function isText(args: readonly RedisArgument[]): args is readonly (string | number)[] {
  return args.every((argument) => typeof argument !== 'object')
}

/** An array of bulk strings: https://redis.io/docs/latest/develop/reference/protocol-spec/ */
function textOf(name: string, args: readonly (string | number)[]): string {
  const parts = [`*${args.length + 1}`, `$${Buffer.byteLength(name)}`, name]
  for (const argument of args) {
    const text = typeof argument === 'string' ? argument : String(argument)
    parts.push(`$${Buffer.byteLength(text)}`, text)
  }
  parts.push('')
  return parts.join('\r\n')
}

/** The driver takes other byte arrays than its own for text. */
function bytesOf(argument: RedisArgument): string | number | Buffer {
  if (typeof argument !== 'object' || Buffer.isBuffer(argument)) return argument
  return Buffer.from(argument.buffer, argument.byteOffset, argument.byteLength)
}
