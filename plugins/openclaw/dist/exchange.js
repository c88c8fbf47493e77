/** One HTTP exchange with a deadline: what came back, or how it broke. Never rejects. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
/** Four times the largest request a provider takes by default: beyond it, it is not our provider. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Without an agent on a connection of its own. */
export function exchange(question, agent) {
    return new Promise((resolve) => {
        let timer;
        const end = (outcome) => {
            clearTimeout(timer);
            resolve(outcome);
        };
        try {
            const asked = (question.place.isSecure ? httpsRequest : httpRequest)({
                ...question.place.options,
                agent: agent ?? false,
                method: "POST",
                path: question.place.prefix + question.path,
                headers: headersOf(question),
            });
            const giveUp = (broken) => {
                end(broken);
                asked.destroy();
            };
            // After the pause of a busy event loop the answer may be there already, unread: it is read before we give up.
            timer = setTimeout(() => setImmediate(() => giveUp({ how: "late", text: "late", wasStale: false })), Math.max(0, question.withinMs));
            asked.on("error", (error) => end(brokenBy(error, asked.reusedSocket)));
            asked.on("response", (answer) => {
                const parts = [];
                let bytes = 0;
                answer.on("data", (part) => {
                    parts.push(part);
                    bytes += part.length;
                    if (bytes <= MAX_ANSWER_BYTES)
                        return;
                    giveUp({ how: "foreign", text: `the answer is longer than ${MAX_ANSWER_BYTES} bytes`, wasStale: false });
                });
                answer.on("error", (error) => end(brokenBy(error, false)));
                answer.on("end", () => end({ status: answer.statusCode ?? 0, body: Buffer.concat(parts) }));
            });
            asked.end(question.body);
        }
        catch (error) {
            end(brokenBy(error instanceof Error ? error : new Error(String(error)), false));
        }
    });
}
function headersOf(question) {
    return {
        "content-type": "application/json",
        accept: "application/json",
        "content-length": question.body.length,
        ...(question.token ? { authorization: `Bearer ${question.token}` } : {}),
    };
}
function brokenBy(error, wasReused) {
    const isForeign = error.code?.startsWith("HPE_") || error.code?.includes("CERT") || error.code?.includes("SSL");
    const how = isForeign ? "foreign" : "connection";
    return { how, text: error.message, code: error.code, wasStale: wasReused && !isForeign };
}
