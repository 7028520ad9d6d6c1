// Calls a URL by the HTTP client of Node.js and prints what came: http.mjs URL
import http from 'node:http'

const url = new URL(process.argv[2])
const came = { interim: [], continued: false }
const request = http.request(url, {
  method: 'POST', headers: { Trailer: 'X-Sum', 'Transfer-Encoding': 'chunked', Expect: '100-continue' },
})
request.on('information', info => came.interim.push(info.statusCode))
request.on('continue', () => {
  came.continued = true
  request.write('first,')
  request.write('second')
  request.addTrailers({ 'X-Sum': '12' })
  request.end()
})
request.on('response', answer => {
  let body = ''
  answer.setEncoding('utf8')
  answer.on('data', part => { body += part })
  answer.on('end', () => {
    Object.assign(came, { status: answer.statusCode, header: answer.headers, trailer: answer.trailers, body })
    console.log(JSON.stringify(came))
  })
})
request.flushHeaders()
