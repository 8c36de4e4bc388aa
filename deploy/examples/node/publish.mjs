// Publishes one event of family-portal over HTTP. Node 18 or later, without packages.
//
// EVENTS_API_URL   the address of events-api
// EVENTS_API_KEY   an API key for `events:publish`, bound to the app
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

// Returns once the event is accepted. The id makes a repetition harmless.
async function publish(event, attempts = 5) {
  for (let attempt = 1; ; attempt += 1) {
    let failure;
    let retryAfter = 0;
    try {
      const response = await fetch(`${process.env.EVENTS_API_URL.replace(/\/+$/, "")}/v1/events`, {
        method: "POST",
        headers: {
          "Content-Type": "application/cloudevents+json",
          Authorization: `Bearer ${process.env.EVENTS_API_KEY}`,
        },
        body: JSON.stringify(event),
        signal: AbortSignal.timeout(30_000),
      });
      if (response.status === 202) return;
      failure = `status ${response.status}: ${await response.text()}`;
      if (response.status !== 429 && response.status < 500) throw new Error(failure, { cause: "refused" });
      retryAfter = Number(response.headers.get("Retry-After")) || 0;
    } catch (error) {
      if (error.cause === "refused") throw error;
      failure = `no answer: ${error.message}`;
    }
    if (attempt >= attempts) throw new Error(failure);
    await sleep(1000 * (retryAfter + 2 ** (attempt - 1) * (0.5 + Math.random() / 2)));
  }
}

const event = {
  specversion: "1.0",
  id: randomUUID(),
  source: "/family-portal/chat",
  type: "chat.message.created",
  time: new Date().toISOString(),
  data: {
    message: { id: 123, text: "Dinner is at seven.", thread_id: null },
    sender: { id: 456, name: "Pat" },
    participants: [456, 457, 458],
  },
};
try {
  await publish(event);
  console.log("accepted", event.id);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
