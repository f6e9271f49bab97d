// Prints the page at a URL as a Node program would: fetch.mjs URL [USER-AGENT].
const [url, agent] = process.argv.slice(2);
const response = await fetch(url, { headers: agent ? { "User-Agent": agent } : {} });
if (!response.ok) {
  console.error(`${response.status} ${response.statusText}`);
  console.error(await response.text());
  process.exit(1);
}
process.stdout.write(Buffer.from(await response.arrayBuffer()));
