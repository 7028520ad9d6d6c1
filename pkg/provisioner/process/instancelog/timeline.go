package instancelog

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// stamp says when everything before an offset of a log had been written.
type stamp struct {
	offset int64
	at     time.Time
}

// stampBytes is the length of a stamp in a file: its offset, and its time in
// nanoseconds since 1970, both big-endian.
const stampBytes = 16

func (s stamp) encode() []byte {
	data := binary.BigEndian.AppendUint64(nil, uint64(s.offset))
	return binary.BigEndian.AppendUint64(data, uint64(s.at.UnixNano()))
}

// timeline are the stamps of a log, whose offsets rise.
type timeline []stamp

// readTimeline reads the stamps of a log, up to the first invalid one; none if the file does
// not exist.
func readTimeline(path string) (timeline, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeTimeline(data), nil
}

func decodeTimeline(data []byte) (times timeline) {
	for ; len(data) >= stampBytes; data = data[stampBytes:] {
		s := stamp{int64(binary.BigEndian.Uint64(data)), time.Unix(0, int64(binary.BigEndian.Uint64(data[8:])))}
		if s.offset <= times.lastOffset() {
			break
		}
		times = append(times, s)
	}
	return times
}

// lastOffset is how much of the log has a time.
func (t timeline) lastOffset() int64 {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].offset
}

// timeOf is when a line was written that ends before an offset; false if it is not known.
func (t timeline) timeOf(end int64) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(t, end, func(s stamp, end int64) int { return int(min(1, max(-1, s.offset-end))) })
	if i == len(t) {
		return time.Time{}, false
	}
	return t[i].at, true
}

// offsetSince is the offset of the first byte that was written at a time or later.
func (t timeline) offsetSince(at time.Time) (offset int64) {
	for _, s := range t {
		if !s.at.Before(at) {
			break
		}
		offset = s.offset
	}
	return offset
}
