package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// Roles. Agents are agent-1, agent-2 and so on, in the order in which they were started.
const (
	theGateway    = "gateway"
	schedulerA    = "scheduler-a"
	schedulerB    = "scheduler-b"
	theController = "controller"
	// thePeers watch schedulers, as gateways do.
	thePeers = "peers"
)

// servers are the roles that others connect to.
var servers = []string{theGateway, schedulerA, schedulerB}

// recordedAddr is what the address of a role is called in recordings.
func recordedAddr(role string) string { return role + ":1" }

// Sides of a stream.
const (
	client = "client"
	server = "server"
)

// line is one line of a recording. Exactly one of Do, Seen, Opens, Message and Ends is
// there.
type line struct {
	// At is how long after the beginning it was.
	At elapsed `json:"at"`
	// Do is what happens to the world: what a person or a function does.
	Do string `json:"do,omitempty"`
	// Seen is what a role did to the world.
	Seen *action `json:"seen,omitempty"`

	// Stream counts from 1; what follows is about it.
	Stream int      `json:"stream,omitempty"`
	Opens  *opening `json:"opens,omitempty"`
	// By is the side that said or ended something.
	By      string          `json:"by,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	// Ends is how a side ended the stream: a server with a code, a client with OK if it
	// has said all, and Canceled if it is gone.
	Ends string `json:"ends,omitempty"`
}

type opening struct {
	Client string `json:"client"`
	Server string `json:"server"`
	Method string `json:"method"`
}

// Deeds.
const (
	started  = "started"  // a scheduler: an instance
	stopped  = "stopped"  // a scheduler: an instance
	taken    = "taken"    // a scheduler: a spare instance, which is a function's from then on
	ended    = "ended"    // an agent
	assigned = "assigned" // an agent: its runtime, to a function
	invoked  = "invoked"  // an agent: its function
	answered = "answered" // the gateway: a call
)

// action is what a role did to the world.
type action struct {
	Role string `json:"role"`
	What string `json:"what"`
	// Agent is the instance's, and the rest how it was started.
	Agent    string `json:"agent,omitempty"`
	UID      string `json:"uid,omitempty"`
	Revision string `json:"revision,omitempty"`
	CID      string `json:"cid,omitempty"`
	Token    string `json:"token,omitempty"`
	// Spare says that it is of no function so far.
	Spare bool `json:"spare,omitempty"`
	// Call is the number of the call.
	Call int `json:"call,omitempty"`
	// Said is what the function was asked, or the client was answered.
	Said string `json:"said,omitempty"`
}

// elapsed is a time.Duration that is written as people do.
type elapsed time.Duration

func (l elapsed) MarshalText() ([]byte, error) { return []byte(time.Duration(l).String()), nil }

func (l *elapsed) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*l = elapsed(d)
	return err
}

// recording is what was said in one story.
type recording struct {
	story string
	lines []line
}

func (r recording) write(folder string) error {
	var text bytes.Buffer
	for _, l := range r.lines {
		one, err := json.Marshal(l)
		if err != nil {
			return err
		}
		text.Write(append(one, '\n'))
	}
	return os.WriteFile(filepath.Join(folder, r.story+".jsonl"), text.Bytes(), 0o644)
}

// release is what was recorded of one release.
type release struct {
	// files are the messages as they were then.
	files      *protoregistry.Files
	recordings []recording
}

// descriptors is the name of the file with the messages of a release.
const descriptors = "wire.binpb"

func writeDescriptors(folder string) error {
	set := &descriptorpb.FileDescriptorSet{}
	for _, file := range []protoreflect.FileDescriptor{
		agentwire.File_wire_agent_v1alpha1_agent_proto, controlwire.File_wire_control_v1alpha1_control_proto,
	} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, descriptors), text, 0o644)
}

func readRelease(folder string) (*release, error) {
	text, err := os.ReadFile(filepath.Join(folder, descriptors))
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, set); err != nil {
		return nil, err
	}
	r := &release{}
	if r.files, err = protodesc.NewFiles(set); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New(folder + " has no recordings")
	}
	for _, path := range paths {
		lines, err := readLines(path)
		if err != nil {
			return nil, err
		}
		r.recordings = append(r.recordings, recording{story: strings.TrimSuffix(filepath.Base(path), ".jsonl"), lines: lines})
	}
	return r, nil
}

func readLines(path string) ([]line, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []line
	for one := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(one, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// method finds a method as gRPC names it; nil if the release has none of that name.
func (r *release) method(full string) protoreflect.MethodDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	found, err := r.files.FindDescriptorByName(protoreflect.FullName(service).Append(protoreflect.Name(name)))
	if err != nil {
		return nil
	}
	method, _ := found.(protoreflect.MethodDescriptor)
	return method
}
