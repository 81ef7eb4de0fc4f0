import type { Reach } from "./fault-point.ts";

/** What the points need of a model of the AI SDK, of any version of its protocol. */
export interface Model {
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** A model with a point before each request, one when the first part of a streamed reply has come, and one at its end. */
export function faultyModel<M extends Model>(model: M, reach: Reach): M {
  const points: Model = {
    doGenerate: async (options) => {
      await reach("model:before");
      try {
        return await model.doGenerate(options);
      } finally {
        await reach("model:after");
      }
    },
    doStream: async (options) => {
      await reach("model:before");
      const result = await model.doStream(options);
      return { ...result, stream: result.stream.pipeThrough(pointsOf(reach)) };
    },
  };
  // Models are often instances of classes: everything else is asked of the model itself.
  return new Proxy(model, {
    get: (target, key) => Reflect.get(key === "doGenerate" || key === "doStream" ? points : target, key),
  });
}

function pointsOf(reach: Reach): TransformStream<unknown, unknown> {
  let isFirst = true;
  return new TransformStream({
    transform: async (part, controller) => {
      if (isFirst) await reach("model:streaming");
      isFirst = false;
      controller.enqueue(part);
    },
    flush: () => reach("model:after"),
  });
}
