package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/windlass-dev/windlass/internal/wiretest"
)

// Every release is played to each side of today, as it spoke and as a later one may.
func TestWhatEveryReleaseSaidIsUnderstood(t *testing.T) {
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Fatal("no release was recorded")
	}
	for _, folder := range folders {
		r, err := readRelease(filepath.Join("testdata", folder.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, recorded := range r.recordings {
			for _, side := range recorded.sides() {
				for _, later := range []bool{false, true} {
					name := strings.Join([]string{folder.Name(), recorded.story, side}, "/")
					if later {
						name += "/later"
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						if err := replay(t, r, recorded, side, later); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
}

// What is not as it was recorded is noticed. Instead of a program, the recording is broken.
func TestWhatIsNotAsItWasIsNoticed(t *testing.T) {
	r, err := readRelease(filepath.Join("testdata", "v1alpha1-1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		side   string
		story  string // cold-start if it is empty
		before string // is in a line of the recording
		now    string // replaces it; dropped says that the line goes
		want   string
	}{
		"another member": {
			side: schedulerA, before: `{"welcome":{"epoch":"1","protocol":1,"release":"(devel)"}}`, now: `{"drain":{}}`,
			want: "PullReply.drain is not there",
		},
		"another value":          {side: callers, before: `"calls":1`, now: `"calls":2`, want: "Loan.calls: it is 1, and was 2"},
		"another value in a set": {side: callers, before: `"running":1`, now: `"running":2`, want: "there is no"},
		"a message that is new":  {side: callers, before: `{"hello":`, now: dropped, want: "hello is"},
		"a message in between":   {side: callers, before: `{"pull":{"credits":1}}`, now: dropped, want: "Pull.credits is 1"},
		"a field that was empty": {side: callers, before: `,"lent":true`, now: "", want: "Ticket.lent is true"},
		"an answer":              {side: callers, before: `"said":"200 yes \"hi\""`, now: `"said":"200 yes \"ho\""`, want: "answered with"},
		"a call that is lost":    {side: callers, before: `"do":"answer 1 hi"`, now: `"do":"wait"`, want: "is not there, and was"},
		"a deed":                 {side: schedulerA, before: `"what":"started"`, now: `"what":"stopped"`, want: "does not do what it did"},
		"a method":               {side: callers, before: `Instances/Pull`, now: `Instances/Push`, want: "does not open a stream"},
		"the end of a stream": {
			side: schedulerA, story: "idle-leave", before: `"by":"server","ends":"OK"`, now: `"by":"server","ends":"Aborted"`,
			want: "ends its side",
		},
		"an id": {side: schedulerA, before: `{"ticket":{"invocationId":"A`, now: `{"ticket":{"invocationId":"B`, want: "it is"},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(r.recordings, func(r recording) bool { return r.story == cmp.Or(tc.story, "cold-start") })
			broken := r.recordings[at].changed(t, tc.before, tc.now)
			err := replay(t, r, broken, tc.side, false)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// dropped stands for no line.
const dropped = "dropped"

// changed has the first line with a text in it changed, or dropped.
func (r recording) changed(t *testing.T, before, now string) recording {
	for i, l := range r.lines {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), before) {
			continue
		}
		lines := slices.Delete(slices.Clone(r.lines), i, i+1)
		if now != dropped {
			var changed line
			if err := json.Unmarshal([]byte(strings.Replace(string(text), before, now, 1)), &changed); err != nil {
				t.Fatal(err)
			}
			lines = slices.Insert(lines, i, changed)
		}
		return recording{r.story, lines}
	}
	t.Fatalf("the recording has no %s", before)
	return r
}

// callers is the side of the gateway and all agents. What they say to each other goes in frames,
// which are not recorded, so they are today's together or fake peers together.
const callers = "callers"

// sideOf is the side on which a role is; most are alone.
func sideOf(role string) string {
	if role == theGateway || strings.HasPrefix(role, "agent-") {
		return callers
	}
	return role
}

// sides are those of a recording that today's programs can play: the controller needs a
// cluster.
func (r recording) sides() (sides []string) {
	for _, l := range r.lines {
		if l.Opens == nil {
			continue
		}
		for _, role := range []string{l.Opens.Client, l.Opens.Server} {
			if side := sideOf(role); side != theController && !slices.Contains(sides, side) {
				sides = append(sides, side)
			}
		}
	}
	return sides
}

// patience is how much longer than it took then something may take now.
const patience = time.Minute

// player plays a recording to one side of today.
type player struct {
	release   *release
	recording recording
	side      string
	// later lets fake peers say more than was recorded.
	later bool
	world *harness
	peers *fakePeers
	names names
	// streams are those of the side, by their numbers in the recording.
	streams map[int]*stream
	// left are the streams that were ended, by either side.
	left map[int]bool
	// offered are the calls of which that was said, by their ids then and now.
	offered map[string]bool
	// toPing says that a program of the side pinged then.
	toPing bool

	mu    sync.Mutex
	deeds []action
}

// replay plays a recording to the programs of today that play a side. The error says the first
// thing that is not as it was.
func replay(t *testing.T, r *release, recorded recording, side string, later bool) (err error) {
	n := newNetwork(t)
	synctest.Test(t, func(t *testing.T) {
		p := &player{
			release: r, recording: recorded, side: side, later: later, peers: newFakePeers(n, r), names: make(names),
			streams: make(map[int]*stream), left: make(map[int]bool), offered: make(map[string]bool),
		}
		for role, addr := range n.addrs {
			p.names[recordedAddr(role)] = addr
		}
		p.world = newHarness(t, n, p.plays, p.note)
		for _, role := range []string{schedulerA, schedulerB} { // gateways serve nothing that is recorded
			if !p.plays(role) {
				p.peers.serve(role)
			}
		}
		p.world.begin()
		err = p.play()
		p.peers.end()
		p.world.end()
	})
	return err
}

// plays tells whether a role is a program of today.
func (p *player) plays(role string) bool { return sideOf(role) == p.side }

func (p *player) note(d action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deeds = append(p.deeds, d)
}

func (p *player) play() error {
	var at elapsed
	for i, l := range p.recording.lines {
		time.Sleep(time.Duration(l.At - at))
		at = l.At
		synctest.Wait()
		if err := p.line(l); err != nil {
			return fmt.Errorf("line %d, after %v: %w", i+1, time.Duration(l.At), err)
		}
	}
	synctest.Wait()
	return p.atTheEnd()
}

func (p *player) line(l line) error {
	switch {
	case l.Do != "":
		p.world.act(l.Do)
		return nil
	case l.Seen != nil:
		return p.deed(*l.Seen)
	case l.Opens != nil:
		return p.open(l.Stream, *l.Opens)
	case p.streams[l.Stream] == nil:
		return nil // between fake peers
	case l.Message != nil:
		return p.message(p.streams[l.Stream], l)
	default:
		return p.ending(p.streams[l.Stream], l)
	}
}

// await waits until something is so. What it waits for is not so yet if it is false.
func await(is func() bool) bool {
	const step = 5 * time.Millisecond
	for waited := time.Duration(0); waited < patience; waited += step {
		synctest.Wait()
		if is() {
			return true
		}
		time.Sleep(step)
	}
	return false
}

func (p *player) deed(d action) error {
	if p.plays(d.Role) {
		return p.expect(d)
	}
	switch d.What {
	case started:
		if fn := p.world.functionOf(d.UID); fn != nil {
			// Later releases may name revisions otherwise.
			today := fn.Revision()
			if err := p.names.bind(d.Revision, today); err != nil {
				return err
			}
			d.Revision = today
		}
		p.world.platform.add(d, nil)
	case taken:
		p.world.platform.take(d)
	case stopped:
		p.world.platform.stop(d.Agent)
	case ended:
		p.world.platform.over(d.Agent)
	}
	return nil
}

// expect waits until a program does what it did then.
func (p *player) expect(want action) error {
	var got action
	if !await(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		at := slices.IndexFunc(p.deeds, func(d action) bool {
			return d.Role == want.Role && d.What == want.What && d.Call == want.Call && (d.UID == want.UID || d.Spare && want.Spare)
		})
		if at < 0 {
			return false
		}
		got = p.deeds[at]
		p.deeds = slices.Delete(p.deeds, at, at+1)
		return true
	}) {
		return fmt.Errorf("%s does not do what it did: %+v", want.Role, want)
	}
	if got.Said != want.Said {
		return fmt.Errorf("call %d was %s with %s, and then with %s", want.Call, want.What, got.Said, want.Said)
	}
	for recorded, today := range map[string]string{want.Revision: got.Revision, want.CID: got.CID, want.Token: got.Token} {
		if err := p.names.bind(recorded, today); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) open(n int, o opening) (err error) {
	switch {
	case p.plays(o.Client):
		var s *stream
		if !await(func() bool { s = p.peers.taken(o); return s != nil }) {
			return fmt.Errorf("%s does not open a stream of %s to %s", o.Client, o.Method, o.Server)
		}
		p.streams[n] = s
	case p.plays(o.Server):
		if p.streams[n], err = p.peers.open(o); err != nil {
			return fmt.Errorf("%s at %s: %w", o.Method, o.Server, err)
		}
	}
	return nil
}

// roleOf is who speaks on a side of a stream.
func (s *stream) roleOf(side string) string {
	if side == client {
		return s.Client
	}
	return s.Server
}

// parse reads a message as it was then.
func (s *stream) parse(l line) (*dynamicpb.Message, error) {
	kind := s.method.Input()
	if l.By == server {
		kind = s.method.Output()
	}
	m := dynamicpb.NewMessage(kind)
	return m, protojson.Unmarshal(l.Message, m)
}

func (p *player) message(s *stream, l line) error {
	m, err := s.parse(l)
	if err != nil {
		return err
	}
	if p.plays(s.roleOf(l.By)) {
		return p.hear(s, m, l)
	}
	if isPong(m) {
		return nil // fake peers answer pings when they come
	}
	recorded := proto.CloneOf(m)
	p.names.translate(m)
	p.heard(recorded, m)
	return p.say(s, m)
}

// heard takes note of the calls that were offered, then and now.
func (p *player) heard(then, now *dynamicpb.Message) {
	for _, m := range []*dynamicpb.Message{then, now} {
		for _, id := range idsIn(m, "offers") {
			p.offered[id] = true
		}
	}
}

// saidBefore tells whether a message is one of a gateway that says nothing new: it offers
// calls again, which is harmless.
func (p *player) saidBefore(s *stream, m *dynamicpb.Message) bool {
	if !strings.HasSuffix(s.Method, "/Offer") || m.Descriptor() != s.method.Input() {
		return false
	}
	offers := idsIn(m, "offers")
	return len(offers) > 0 && len(idsIn(m, "cancellations")) == 0 &&
		!slices.ContainsFunc(offers, func(id string) bool { return !p.offered[id] })
}

// idsIn are the calls that a list in a message is about.
func idsIn(m *dynamicpb.Message, field protoreflect.Name) (ids []string) {
	list := m.Descriptor().Fields().ByName(field)
	if list == nil || !list.IsList() || list.Message() == nil {
		return nil
	}
	for i := range m.Get(list).List().Len() {
		ids = append(ids, idOf(m.Get(list).List().Get(i).Message()))
	}
	return ids
}

func idOf(m protoreflect.Message) string {
	return string(m.Get(m.Descriptor().Fields().ByName("invocation_id")).Bytes())
}

// say lets a fake peer say what it said then. A later release adds a field to each message,
// and a member that is new behind it.
func (p *player) say(s *stream, m *dynamicpb.Message) error {
	said := m
	if p.later {
		said = wiretest.Newer(m)
	}
	if err := s.say(said); err != nil {
		how, _ := s.ended()
		return fmt.Errorf("%s of %s has ended, with %v, before this was said: %v", s.Method, p.side, how, m)
	}
	if p.later && m.Descriptor().Oneofs().Len() > 0 {
		_ = s.say(wiretest.Beyond(dynamicpb.NewMessage(m.Descriptor()))) // what came before may end the stream
	}
	return nil
}

// hear waits until a program says what it said then.
func (p *player) hear(s *stream, want *dynamicpb.Message, l line) error {
	if isPing(want) || p.saidBefore(s, want) {
		p.toPing = p.toPing || isPing(want)
		return nil // how often is not promised
	}
	var got *dynamicpb.Message
	if !await(func() (is bool) {
		for {
			if got, is = p.next(s); !is {
				_, over := s.ended()
				return over
			}
			if !isLevel(s) || p.names.same(want.ProtoReflect(), got.ProtoReflect()) {
				return true
			}
		}
	}) || got == nil {
		how, over := s.ended()
		return fmt.Errorf("%s does not say on %s (ended: %v, %v) what it said: %s", s.roleOf(l.By), s.Method, over, how, l.Message)
	}
	if err := p.names.differ(want, got); err != nil {
		return fmt.Errorf("on %s, %s says %v, and said %s: %w", s.Method, s.roleOf(l.By), got, l.Message, err)
	}
	p.heard(want, got)
	return nil
}

// next is the next message that says something new.
func (p *player) next(s *stream) (*dynamicpb.Message, bool) {
	for {
		if m, is := s.next(); !is || !p.saidBefore(s, m) {
			return m, is
		}
	}
}

func has(m *dynamicpb.Message, name string) bool {
	kind := m.Descriptor().Oneofs().ByName("kind")
	if kind == nil {
		return false
	}
	field := m.WhichOneof(kind)
	return field != nil && string(field.Name()) == name
}

func isPing(m *dynamicpb.Message) bool { return has(m, "ping") }
func isPong(m *dynamicpb.Message) bool { return has(m, "pong") }

// isLevel tells whether what a stream says are levels, which may change in other steps.
func isLevel(s *stream) bool { return strings.HasSuffix(s.Method, "/Watch") }

func (p *player) ending(s *stream, l line) error {
	before := p.left[l.Stream]
	p.left[l.Stream] = true
	if !p.plays(s.roleOf(l.By)) {
		if l.By == client || !before || l.Ends != codes.Canceled.String() {
			s.leave(codeOf(l.Ends))
		}
		return nil
	}
	if l.By == server && before && p.gone(l.Stream) {
		return nil // its client left without waiting for that
	}
	var how codes.Code
	if !await(func() (over bool) {
		if m, is := p.next(s); is {
			p.push(s, m)
			return true
		}
		how, over = s.ended()
		return over
	}) {
		return fmt.Errorf("%s does not end its side of %s", s.roleOf(l.By), s.Method)
	}
	if m, is := s.next(); is {
		return fmt.Errorf("on %s, %s says what it did not say: %v", s.Method, p.side, m)
	}
	if how != codeOf(l.Ends) {
		return fmt.Errorf("%s ends its side of %s with %v, and then with %s", s.roleOf(l.By), s.Method, how, l.Ends)
	}
	return nil
}

// gone tells whether the client of a stream broke it off then.
func (p *player) gone(n int) bool {
	return slices.ContainsFunc(p.recording.lines, func(l line) bool {
		return l.Stream == n && l.By == client && l.Ends == codes.Canceled.String()
	})
}

// push puts a message back.
func (p *player) push(s *stream, m *dynamicpb.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append([]*dynamicpb.Message{m}, s.heard...)
}

func codeOf(name string) codes.Code {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return c
		}
	}
	panic("no code is called " + name)
}

// atTheEnd sees that nothing more was said, that no stream has ended that had not, and that
// an agent says that it is there if it did.
func (p *player) atTheEnd() error {
	pings := 0
	for n, s := range p.streams {
		pings += s.pinged()
		if m, more := p.next(s); more && !isLevel(s) {
			return fmt.Errorf("on %s, %s says what it did not say: %v", s.Method, p.side, m)
		}
		if how, over := s.ended(); over && !p.left[n] {
			return fmt.Errorf("%s ends its side of %s with %v, and did not", p.side, s.Method, how)
		}
	}
	if p.toPing && pings == 0 {
		return fmt.Errorf("%s does not ping any more", p.side)
	}
	p.peers.mu.Lock()
	defer p.peers.mu.Unlock()
	if len(p.peers.arrived) > 0 {
		return fmt.Errorf("a stream was opened that was not: %+v", p.peers.arrived[0].opening)
	}
	return nil
}
