package httpadapter

import "sync"

const (
	smallBytes = 4 << 10
	largeBytes = 32 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBytes]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBytes]byte) }}
)

// copyBuffer is what bytes are copied through. It is large only while much comes at a time:
// calls that stream little, and there may be a thousand, have a small one.
type copyBuffer struct {
	small *[smallBytes]byte
	large *[largeBytes]byte
}

// next is the buffer for the next read, after one of n bytes; 0 before the first.
func (b *copyBuffer) next(n int) []byte {
	switch {
	case b.large != nil && n < smallBytes, b.large == nil && b.small == nil:
		b.recycle()
		b.small = smallBuffers.Get().(*[smallBytes]byte)
	case b.small != nil && n > smallBytes/2:
		b.recycle()
		b.large = largeBuffers.Get().(*[largeBytes]byte)
	}
	if b.large != nil {
		return b.large[:]
	}
	return b.small[:]
}

// recycle gives the buffer back. What was read into it is lost.
func (b *copyBuffer) recycle() {
	if b.small != nil {
		smallBuffers.Put(b.small)
	}
	if b.large != nil {
		largeBuffers.Put(b.large)
	}
	b.small, b.large = nil, nil
}
