// The faults that are told apart by an exit code; every other Error is about a file.

/** The command line asks for what cannot be. */
export class UsageError extends Error {}

/** ONNX Runtime cannot run this model, or not on these inputs. */
export class RuntimeRefusal extends Error {}

export const EXIT = { fine: 0, failed: 1, usage: 2, unsupported: 3, file: 4, bug: 70 };

/** Prints what happened and returns the exit code for it. */
export function reportError(program, error, usage) {
  const isUsage = error instanceof UsageError || /^ERR_PARSE_ARGS/.test(error.code);
  const isBug =
    [TypeError, ReferenceError, RangeError].some((kind) => error instanceof kind) && !isUsage;
  console.error(
    `${program}: ${isBug ? error.stack : error.message}${isUsage ? `\n\n${usage}` : ''}`,
  );
  if (isUsage) return EXIT.usage;
  if (isBug) return EXIT.bug;
  return error instanceof RuntimeRefusal ? EXIT.unsupported : EXIT.file;
}
