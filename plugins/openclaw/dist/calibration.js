/** From our estimate to the count of the model's provider: `reported = overhead + ratio × estimate`, corrected by every usage
 * that is reported. The same as `offbook.models.calibration`; a test holds the two together. Pure. */
const POINTS_KEPT = 8;
const LEAST_RATIO = 0.6;
const MOST_RATIO = 2;
/** Until the points lie further apart than this, the ratio stays near 1: what a turn adds beside its messages varies. */
const TRUSTED_TOKENS = 500;
const TRUSTED_SHARE = 0.1;
/** With a new point. Where there are too many, of the two that tell most nearly the same the older goes. */
export function withPoint(points, point) {
    const all = [...points, point];
    if (all.length <= POINTS_KEPT)
        return all;
    let [older, nearest] = [0, Infinity];
    for (let first = 0; first < all.length; first += 1) {
        for (let second = first + 1; second < all.length; second += 1) {
            const apart = Math.abs(all[first].estimate - all[second].estimate);
            if (apart <= nearest)
                [older, nearest] = [first, apart]; // of equals the newest: the first ones are furthest apart
        }
    }
    return all.filter((_, at) => at !== older);
}
/** Least squares, held towards a ratio of 1. `instructions`: what we estimate of them, until something was reported. */
export function fitted(points, instructions = 0) {
    if (points.length === 0)
        return { overhead: instructions, ratio: 1 };
    const meanX = sum(points.map(({ estimate }) => estimate)) / points.length;
    const meanY = sum(points.map(({ reported }) => reported)) / points.length;
    const held = TRUSTED_TOKENS ** 2 + (TRUSTED_SHARE * Math.max(...points.map(({ estimate }) => estimate))) ** 2;
    const slope = (x, y) => {
        const together = sum(points.map(({ estimate, reported }) => (estimate - x) * (reported - y)));
        const spread = sum(points.map(({ estimate }) => (estimate - x) ** 2));
        return Math.min(MOST_RATIO, Math.max(LEAST_RATIO, (together + held) / (spread + held)));
    };
    const ratio = slope(meanX, meanY);
    const overhead = meanY - ratio * meanX;
    return overhead >= 0 ? { overhead, ratio } : { overhead: 0, ratio: slope(0, 0) };
}
function sum(numbers) {
    return numbers.reduce((all, one) => all + one, 0);
}
