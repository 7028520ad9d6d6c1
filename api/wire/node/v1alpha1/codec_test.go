package nodewire

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// requests are one of each kind, and those of a busy node with all that they may say.
var requests = []*ComputeRequest{
	{},
	{Kind: &ComputeRequest_Hello{Hello: &Hello{Token: "t", Concurrency: 1, Features: []string{"f"}}}},
	{Kind: &ComputeRequest_Running{Running: &Running{ForNs: 1}}},
	{Kind: &ComputeRequest_Ask{Ask: &Ask{}}},
	{Kind: &ComputeRequest_Ask{Ask: &Ask{Ask: 7}}},
	{Kind: &ComputeRequest_Ask{Ask: &Ask{Ask: math.MaxUint64, WaitedNs: -1}}},
	{Kind: &ComputeRequest_Ended{Ended: &Ended{}}},
	{Kind: &ComputeRequest_Ended{Ended: &Ended{Refused: true}}},
	{Kind: &ComputeRequest_GaveUp{GaveUp: &GaveUp{Ask: 7}}},
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCallsAreDecodedWithoutTables(t *testing.T) {
	for _, r := range requests {
		_, ask := r.GetKind().(*ComputeRequest_Ask)
		_, ended := r.GetKind().(*ComputeRequest_Ended)
		var got ComputeRequest
		if decoded := got.Decode(encoded(t, r)); decoded != (ask || ended) || decoded && !proto.Equal(&got, r) {
			t.Errorf("%v: %v, %v", r, decoded, &got)
		}
	}
}

func TestOnlyAnEmptyRequestIsDecodedInto(t *testing.T) {
	m := &ComputeRequest{Kind: &ComputeRequest_Running{Running: &Running{ForNs: 1}}}
	if m.Decode(encoded(t, requests[4])) || m.GetRunning().GetForNs() != 1 {
		t.Errorf("%v", m)
	}
}

func TestRepliesAreEncodedAsByProto(t *testing.T) {
	for _, r := range []*ComputeReply{
		{}, nil, {Kind: &ComputeReply_Still{Still: &Still{}}}, {Kind: &ComputeReply_Grant{}},
	} {
		if got, ok := r.Encode([]byte("before")); ok || string(got) != "before" {
			t.Errorf("%v is %x, %v", r, got, ok)
		}
	}
	for _, ask := range []uint64{0, 1, 127, 128, math.MaxInt64, math.MaxUint64} {
		r := &ComputeReply{Kind: &ComputeReply_Grant{Grant: &Grant{Ask: ask}}}
		want := append([]byte("before"), encoded(t, r)...)
		if got, ok := r.Encode([]byte("before")); !ok || !bytes.Equal(got, want) {
			t.Errorf("%v is %x, %v; want %x", r, got, ok, want)
		}
	}
}

// Whatever is decoded means what it means to proto.Unmarshal.
func FuzzDecode(f *testing.F) {
	for _, r := range requests {
		b := encoded(f, r)
		f.Add(b)
		f.Add(append(b, b...))
		f.Add(append(b, 0x98, 0x06, 0x01)) // a member of a later release
	}
	ask := protowire.AppendVarint([]byte{0x18 &^ 7, 0x80, 0x00}, 1)
	f.Add(append([]byte{0x1a, byte(len(ask))}, ask...))
	f.Add([]byte{0x1a, 0x04, 0x08, 0x01, 0x08, 0x02})       // twice
	f.Add([]byte{0x22, 0x04, 0x08, 0x01, 0x10, 0x01})       // a later release says more of an end
	f.Add([]byte{0x22, 0x03, 0x08, 0x80, 0x02})             // a number for a word
	f.Add([]byte{0x1a, 0x0b, 0x08, 1, 1, 1, 1, 1, 1, 1, 1}) // it is not all there
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want ComputeRequest
		if !got.Decode(b) {
			return
		}
		if err := proto.Unmarshal(b, &want); err != nil || !proto.Equal(&got, &want) {
			t.Errorf("%x: %v; want %v, %v", b, &got, &want, err)
		}
	})
}
