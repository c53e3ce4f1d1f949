/**
 * The client that Prisma 7 generates for a schema without models: its generator writes these lines, and needs the internet for
 * that. The runtime is Prisma's own.
 */
import { PrismaBetterSqlite3 } from '@prisma/adapter-better-sqlite3'
import { PrismaPg } from '@prisma/adapter-pg'
import * as runtime from '@prisma/client/runtime/client'

/** As generated, but for the model accessors that there would be. */
export interface PrismaClient {
  [K: symbol]: { types: unknown }
  $connect(): runtime.Types.Utils.JsPromise<void>
  $disconnect(): runtime.Types.Utils.JsPromise<void>
  $executeRawUnsafe<_T = unknown>(query: string, ...values: unknown[]): runtime.Types.Public.PrismaPromise<number>
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): runtime.Types.Public.PrismaPromise<T>
  $transaction<R>(
    fn: (prisma: Omit<PrismaClient, runtime.ITXClientDenyList>) => runtime.Types.Utils.JsPromise<R>,
    options?: { maxWait?: number; timeout?: number },
  ): runtime.Types.Utils.JsPromise<R>
}

type Provider = 'postgresql' | 'sqlite'

const config = (provider: Provider): runtime.GetPrismaClientConfig => ({
  previewFeatures: [],
  clientVersion: '7.10.1',
  engineVersion: 'd1b3f377ca835d73fd50954a5e22128b9ebdd6b8',
  activeProvider: provider,
  inlineSchema: `generator client {\n  provider = "prisma-client"\n}\n\ndatasource db {\n  provider = "${provider}"\n}\n`,
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: 'AAAA' },
  compilerWasm: {
    getRuntime: async () => await import(`@prisma/client/runtime/query_compiler_fast_bg.${provider}.mjs`),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = await import(`@prisma/client/runtime/query_compiler_fast_bg.${provider}.wasm-base64.mjs`)
      // Not among the types of the language, nor among those of Node 20.
      return Reflect.construct(Reflect.get(Reflect.get(globalThis, 'WebAssembly'), 'Module'), [
        Buffer.from(wasm, 'base64'),
      ])
    },
    importName: './query_compiler_fast_bg.js',
  },
})

type Adapter = NonNullable<runtime.PrismaClientOptions['adapter']>

function create(provider: Provider, adapter: Adapter): PrismaClient {
  const Client = runtime.getPrismaClient(config(provider)) as unknown as new (options: object) => PrismaClient
  return new Client({ adapter })
}

export const prismaOnPostgres = (connectionString: string): PrismaClient =>
  create('postgresql', new PrismaPg({ connectionString, max: 1 }))

export const prismaOnSqlite = (path: string): PrismaClient =>
  create('sqlite', new PrismaBetterSqlite3({ url: `file:${path}` }))
