package serve

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// frameHeaderLen is the length of a frame's header, and minFrame what every peer takes of a
	// frame behind it, in bytes.
	frameHeaderLen = 9
	minFrame       = 16 << 10
	// messagePrefix is what precedes a message: whether it is compressed, and its length.
	messagePrefix = 5
	// maxStatusText bounds the text of a status, in bytes, so that it fits into one frame.
	maxStatusText = 4 << 10
)

var (
	// serverSettings let the client keep no table of headers, since this side has none either,
	// and open one stream at a time.
	serverSettings = appendSettings(nil,
		http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: receiveWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxWireHeaders},
	)
	settingsAck = appendFrame(nil, http2.FrameSettings, http2.FlagSettingsAck, 0)
	// answerHeaders begin every answer.
	answerHeaders = encodeHeaders(":status", "200", "content-type", contentType)
)

const contentType = "application/grpc"

// frameReader reads one frame at a time, for one connection after the other: between frames a
// connection has none, and no table of headers either.
type frameReader struct {
	framer *http2.Framer
	header []byte // of the frame, as far as it was not read again
	from   io.Reader
}

var frameReaders = sync.Pool{New: func() any {
	r := &frameReader{}
	r.framer = http2.NewFramer(io.Discard, r)
	r.framer.SetMaxReadFrameSize(minFrame)
	r.framer.SetReuseFrames()
	r.framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	r.framer.MaxHeaderListSize = maxWireHeaders
	return r
}}

// read reads the frame with a header, whose rest comes from a connection. The frame is valid until
// the next one is read.
func (r *frameReader) read(header []byte, rest io.Reader) (http2.Frame, error) {
	r.header, r.from = header, rest
	return r.framer.ReadFrame()
}

// Read implements io.Reader.
func (r *frameReader) Read(p []byte) (int, error) {
	if len(r.header) > 0 {
		n := copy(p, r.header)
		r.header = r.header[n:]
		return n, nil
	}
	return r.from.Read(p)
}

// request is what opens a stream.
type request struct {
	id                        uint32
	halfClosed, truncated     bool
	method, path, contentType string
}

func requestOf(f *http2.MetaHeadersFrame) request {
	r := request{id: f.StreamID, halfClosed: f.StreamEnded(), truncated: f.Truncated, method: f.PseudoValue("method"), path: f.PseudoValue("path")}
	for _, field := range f.RegularFields() {
		if field.Name == "content-type" {
			r.contentType = field.Value
		}
	}
	return r
}

// check refuses what is no stream of a method, with a status of HTTP and one of gRPC.
func (r request) check(of string) (httpStatus int, err error) {
	kind, sub, _ := strings.Cut(strings.TrimPrefix(r.contentType, contentType), ";")
	if kind != "" {
		sub = kind
	}
	switch {
	case r.truncated:
		return 431, status.Errorf(codes.ResourceExhausted, "the headers are longer than %d bytes", maxWireHeaders)
	case r.method != "POST":
		return 405, status.Errorf(codes.Internal, "the method is %q: gRPC uses POST", r.method)
	case !strings.HasPrefix(r.contentType, contentType), kind != "" && sub != "+proto":
		return 415, status.Errorf(codes.InvalidArgument, "the content type is %q: this server takes %s", r.contentType, contentType)
	case r.path != of:
		return 200, status.Errorf(codes.Unimplemented, "there is no method %q on a connection that began with %q", r.path, of)
	}
	return 200, nil
}

// appendFrame appends a frame.
func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, stream uint32, payload ...byte) []byte {
	return append(appendFrameHeader(b, len(payload), kind, flags, stream), payload...)
}

func appendFrameHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	var payload []byte
	for _, s := range settings {
		payload = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(payload, uint16(s.ID)), s.Val)
	}
	return appendFrame(b, http2.FrameSettings, 0, 0, payload...)
}

func appendWindow(b []byte, stream uint32, n int) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(b, 4, http2.FrameWindowUpdate, 0, stream), uint32(n))
}

func appendReset(b []byte, stream uint32, why http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(b, 4, http2.FrameRSTStream, 0, stream), uint32(why))
}

func appendGoAway(b []byte, last uint32, why http2.ErrCode, text string) []byte {
	b = appendFrameHeader(b, 8+len(text), http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, last), uint32(why))
	return append(b, text...)
}

// appendEnd appends what ends a stream with a status. begun says that its headers were sent, and
// open that the client may still send.
func appendEnd(b []byte, stream uint32, httpStatus int, st *status.Status, begun, open bool) []byte {
	fields := []string{"grpc-status", strconv.Itoa(int(st.Code()))}
	if text := percentEncode(st.Message()); text != "" {
		fields = append(fields, "grpc-message", text)
	}
	if !begun {
		fields = append([]string{":status", strconv.Itoa(httpStatus), "content-type", contentType}, fields...)
	}
	b = appendFrame(b, http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, stream, encodeHeaders(fields...)...)
	if open {
		b = appendReset(b, stream, http2.ErrCodeNo)
	}
	return b
}

// encodeHeaders encodes names and values without a table.
func encodeHeaders(fields ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0)
	_ = e.WriteField(hpack.HeaderField{}) // says that the table is small, which goes without saying
	block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer takes all
	}
	return block.Bytes()
}

// percentEncode encodes the text of a status as gRPC does. What is longer than maxStatusText is cut.
func percentEncode(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() > maxStatusText {
			break
		}
		if r >= ' ' && r <= '~' && r != '%' {
			b.WriteRune(r)
			continue
		}
		for _, c := range utf8.AppendRune(nil, r) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
