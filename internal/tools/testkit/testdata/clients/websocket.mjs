// websocket.mjs URL: sends text and bytes, checks that they come back, and ends
// the connection unless the other side does. It knows of no proxy.
const bytes = new Uint8Array(100000).map((_, i) => i * 7)
const socket = new WebSocket(process.argv[2])
socket.binaryType = 'arraybuffer'
const came = []

socket.onopen = () => {
	socket.send('h\u00e9llo')
	socket.send(bytes)
	socket.send('last')
}
socket.onmessage = ({ data }) => {
	came.push(data)
	if (came.length < 3) return
	if (came[0] === 'h\u00e9llo') console.log('the same text came back')
	if (Buffer.from(came[1]).equals(Buffer.from(bytes))) console.log('the same 100000 bytes came back')
	if (process.argv[2].endsWith('/echo')) socket.close(4001, 'the client leaves')
}
socket.onclose = ({ code, reason, wasClean }) => {
	console.log(`closed: ${code} ${reason}, cleanly: ${wasClean}`)
	process.exitCode = wasClean ? 0 : 1
}
socket.onerror = ({ message }) => console.error(message)
