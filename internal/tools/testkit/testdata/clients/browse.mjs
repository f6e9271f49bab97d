// Prints the pages at URLs as a library sees them that drives Chromium: browse.mjs LIBRARY URL...
import { createRequire } from 'node:module'

const [library, ...urls] = process.argv.slice(2)
const require = createRequire(process.env.BROWSERS + '/')
const loaded = await import(require.resolve(library))
const launcher = loaded.chromium ?? loaded.default.chromium ?? loaded.default
const browser = await launcher.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const page = await browser.newPage()
for (const url of urls) {
	const response = await page.goto(url)
	console.log('==', url, response.status(), await response.text())
}
await browser.close()
