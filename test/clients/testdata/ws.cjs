// Talks over WebSockets until its standard input ends, and prints what became of them:
// ws.cjs FOLDER URL TALKING SILENT
//
// Those that talk send a message and a ping each second. Those that are silent say something only
// at the beginning and at the end. Every message must come back, in order, as it was.
const [folder, url, talking, silent] = process.argv.slice(2)
const WebSocket = require(folder)

const result = { opened: 0, sent: 0, received: 0, wrong: 0, pings: 0, pongs: 0, closedEarly: 0, errors: [], instances: [] }
let ending = false
const sockets = []

class Talk {
  constructor (quiet) {
    this.quiet = quiet
    this.expected = []
    this.greeted = false
    this.ended = new Promise(resolve => { this.end = resolve })
    this.socket = new WebSocket(url, { perMessageDeflate: false })
    this.socket.on('open', () => { result.opened++ })
    this.socket.on('pong', () => { result.pongs++ })
    this.socket.on('error', error => { result.errors.push(String(error)); this.end() })
    this.socket.on('message', (data, binary) => this.message(data, binary))
    this.socket.on('close', code => {
      if (!ending || this.expected.length > 0) {
        result.closedEarly++
        result.errors.push(`closed with ${code} while ${this.expected.length} messages were to come`)
      }
      this.end()
    })
  }

  message (data, binary) {
    if (!this.greeted) {
      this.greeted = true
      result.instances.push(String(data).replace('instance ', ''))
      this.say(Buffer.alloc(1 << 20, 'big'))
      this.say('hällo ☕')
      return
    }
    result.received++
    const want = this.expected.shift()
    const same = want !== undefined && binary === Buffer.isBuffer(want) && data.equals(Buffer.from(want))
    if (!same) result.wrong++
    if (ending && this.expected.length === 0) this.socket.close(1000)
  }

  say (what) {
    this.expected.push(what)
    result.sent++
    this.socket.send(what)
  }
}

for (let i = 0; i < Number(talking) + Number(silent); i++) sockets.push(new Talk(i >= Number(talking)))

let number = 0
const clock = setInterval(() => {
  for (const talk of sockets) {
    if (talk.quiet || !talk.greeted) continue
    talk.say(`message ${number++}`)
    result.pings++
    talk.socket.ping()
  }
}, 1000)

// The first line says that all are open.
const opening = setInterval(() => {
  if (result.instances.length === sockets.length || result.errors.length > 0) {
    clearInterval(opening)
    console.log(JSON.stringify(result))
  }
}, 20)

process.stdin.resume()
process.stdin.on('end', async () => {
  clearInterval(clock)
  ending = true
  for (const talk of sockets) talk.say('the last one')
  await Promise.all(sockets.map(talk => talk.ended))
  console.log(JSON.stringify(result))
  process.exit(0)
})
