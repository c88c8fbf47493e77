/** What is promised, or undefined where it takes longer. The work itself goes on. */
export async function within(work, longestMs) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(() => resolve(undefined), longestMs)));
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
