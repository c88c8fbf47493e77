/** What is promised, or undefined where it takes longer. The work itself goes on. */
export async function within<T>(work: Promise<T>, longestMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), longestMs)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
