// A site that verifies signed requests with the npm package web-bot-auth, and answers with what
// it found: the field X-Verdict, and the fields of the signature as JSON in X-Signature.
//
//	node verifier.mjs PACKAGES DIRECTORY CARD NAME=CERTIFICATE=KEY=h1|h2 ...
//
// PACKAGES is the folder node_modules, DIRECTORY and CARD are files as they are published. The
// first line of output is JSON: a "name:port" to the address of each server; "plain.test:80" is one
// without TLS.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, directory, card, ...sites] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(path.join(packages, file)).href);
const { verify, jwkToKeyID, helpers } = await load("web-bot-auth/dist/index.mjs");
const { verifierFromJWK } = await load("web-bot-auth/dist/crypto.mjs");
const require = createRequire(path.join(packages, "x.js"));
const { parseDictionary, serializeItem } = require("structured-headers");

const keys = new Map();
for (const jwk of JSON.parse(fs.readFileSync(directory)).keys) {
	const id = await jwkToKeyID(jwk, helpers.WEBCRYPTO_SHA256, helpers.BASE64URL_DECODE);
	if (id !== jwk.kid) throw new Error(`kid ${jwk.kid} is not the thumbprint ${id}`);
	keys.set(id, await verifierFromJWK(jwk));
}

const described = JSON.parse(fs.readFileSync(card));
if (!URL.canParse(described.jwks_uri) || described.web_bot_auth["rfc9309-product-token"] !== "NewsBot") {
	throw new Error("the card does not describe the robot");
}

const nonces = new Set();

// message is the request as the package wants it. Of a dictionary it has the member that the
// signature covers (RFC 9421 §2.1.2), which the package does not look up.
function message(scheme, req) {
	const authority = req.headers[":authority"] ?? req.headers.host;
	const headers = {};
	for (const [name, value] of Object.entries(req.headers)) {
		if (!name.startsWith(":")) headers[name] = value;
	}
	const agent = headers["signature-agent"];
	if (agent && !agent.startsWith('"')) {
		const [, key] = headers["signature-input"].match(/"signature-agent";key="([^"]*)"/);
		headers["signature-agent"] = serializeItem(parseDictionary(agent).get(key));
	}
	return { method: req.method, url: `${scheme}://${authority}${req.url}`, headers };
}

async function verdict(scheme, req) {
	if (!req.headers["signature-input"]) return "unsigned";
	try {
		let nonce;
		await verify(message(scheme, req), (data, signature, params) => {
			nonce = params.nonce;
			const key = keys.get(params.keyid);
			if (!key) throw new Error("unknown key");
			return key(data, signature, params);
		});
		if (nonces.has(nonce)) return "invalid: replayed";
		nonces.add(nonce);
		return "valid";
	} catch (error) {
		return `invalid: ${error.message}`;
	}
}

const served = new WeakMap(); // requests of a connection

const answer = (scheme) => async (req, res) => {
	const url = req.url;
	const n = (served.get(req.socket) ?? 0) + 1;
	if (req.httpVersionMajor === 1) served.set(req.socket, n);
	if (url === "/robots.txt") {
		res.writeHead(404);
		return res.end();
	}
	const found = await verdict(scheme, req);
	if (url.startsWith("/flaky") && n > 1) { // it has taken the request, and closes
		console.log(`again ${url} ${found}`);
		return req.socket.destroy();
	}
	const fields = {};
	for (const name of ["signature-agent", "signature-input", "signature"]) fields[name] = req.headers[name] ?? "";
	const headers = { "X-Verdict": found, "X-Signature": JSON.stringify(fields), "X-Version": req.httpVersion, "Content-Type": "text/plain" };
	const jump = url.match(/^\/jump\/([a-z0-9.]+)(\/.*)$/);
	if (jump) {
		headers.Location = `https://${jump[1]}${jump[2]}`;
		res.writeHead(302, headers);
	} else {
		res.writeHead(200, headers);
	}
	res.end("");
};

const ports = {};
const listen = (name, server) =>
	new Promise((done) =>
		server.listen(0, "127.0.0.1", () => {
			ports[name] = `127.0.0.1:${server.address().port}`;
			done();
		}),
	);
for (const site of sites) {
	const [name, cert, key, version] = site.split("=");
	const options = { cert: fs.readFileSync(cert), key: fs.readFileSync(key), allowHTTP1: true };
	const create = version === "h2" ? http2.createSecureServer : https.createServer;
	await listen(`${name}:443`, create(options, answer("https")));
}
await listen("plain.test:80", http.createServer(answer("http")));
console.log(JSON.stringify(ports));
