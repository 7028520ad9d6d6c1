// Package outbox sends the messages of a stream that says nothing for most of its life: it keeps them in
// order in a bounded queue, and has a goroutine only while messages wait. Thousands of such streams are
// idle, so each has as little as it can.
//
// Putting a message never waits. When the queue is full its user decides what becomes of the stream: a
// peer that does not read what it asked for should lose it.
package outbox
