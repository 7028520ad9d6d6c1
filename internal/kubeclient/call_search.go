package kubeclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// clockSlack is how far apart the clocks of a gateway's and an instance's node
	// may be without a line of the instance being missed.
	clockSlack = 200 * time.Millisecond
	// maxLines bounds the lines of one call.
	maxLines = 1000
)

// LookUpCall collects what the gateways, the schedulers and the instance of an invocation
// logged about it. It looks for Windlass in a namespace or, if that is empty, in any. What cannot be
// read becomes a note, unless no gateway's log can be read: a node that is gone hides nothing else.
func (c *Client) LookUpCall(ctx context.Context, namespace string, id invocation.ID) (invocation.Findings, error) {
	s := &callSearch{client: c, id: id, text: []byte(id.String())}
	all, err := c.allPods(ctx, gateways, namespace)
	if err != nil {
		return s.Findings, err
	}
	if len(all) > 0 {
		namespace = all[0].Namespace
	}
	read := 0
	for i := range all {
		if failed := s.gateway(ctx, &all[i]); failed != nil {
			s.noteUnread(all[i].Name, failed)
			err = failed
			continue
		}
		read++
	}
	switch {
	case read == 0 && err != nil:
		return s.Findings, err
	case s.Record == nil:
		s.noteMissing(read)
	case s.Record.CID != "":
		s.schedulersOf(ctx, namespace)
		s.instance(ctx)
	}
	return s.Findings, ctx.Err()
}

// noteUnread says what is missing in the report.
func (s *callSearch) noteUnread(of string, err error) {
	s.Notes = append(s.Notes, fmt.Sprintf("the log of %s cannot be read: %v", of, err))
}

// schedulersOf reads the logs of all schedulers.
func (s *callSearch) schedulersOf(ctx context.Context, namespace string) {
	all, err := s.client.allPods(ctx, schedulers, namespace)
	if err != nil {
		s.noteUnread("schedulers", err)
	}
	for i := range all {
		if err := s.scheduler(ctx, &all[i]); err != nil {
			s.noteUnread(all[i].Name, err)
		}
	}
}

// callSearch collects the log of one call.
type callSearch struct {
	invocation.Findings
	client *Client
	id     invocation.ID
	text   []byte
}

// noteMissing says why nothing was found, and how to find something next time.
func (s *callSearch) noteMissing(gateways int) {
	why := "by default a gateway logs only calls that failed or are recorded as traces: install the chart with gateway.logCalls=All to have all of them"
	switch {
	case gateways == 0:
		why = "there is no gateway; name the namespace that Windlass runs in with --windlass-namespace"
	case len(s.Lines) > 0:
		why = "what instances wrote is found by what gateways log, if that is JSON: install the chart with log.format=json"
	}
	s.Notes = append(s.Notes, fmt.Sprintf("the logs of %d gateways do not tell of the end of invocation %s, which began at %s: %s",
		gateways, s.id, s.id.Time().UTC().Format(time.RFC3339), why))
}

// gateway looks for the call in a gateway's log, up to the line about its end.
func (s *callSearch) gateway(ctx context.Context, pod *corev1.Pod) error {
	return s.read(ctx, pod, gateways.name, s.id.Time(), func(_ time.Time, line []byte) bool {
		if !bytes.Contains(line, s.text) {
			return true
		}
		s.add(pod.Name, line)
		account, ended := parseCallEnded(line)
		if ended {
			s.Record = &account
		}
		return !ended
	})
}

// scheduler looks in a scheduler's log for what it wrote about the instance before
// that had the call.
func (s *callSearch) scheduler(ctx context.Context, pod *corev1.Pod) error {
	of, cid := s.Record, []byte(s.Record.CID)
	function := []byte(of.Function.String())
	return s.read(ctx, pod, schedulers.name, of.Received, func(at time.Time, line []byte) bool {
		meanwhile := !at.After(of.Ended.Add(clockSlack))
		if meanwhile && bytes.Contains(line, cid) && bytes.Contains(line, function) {
			s.add(pod.Name, line)
		}
		return meanwhile
	})
}

// instance copies what the instance wrote while it had the call, and what its agent
// wrote of the call.
func (s *callSearch) instance(ctx context.Context) {
	of := s.Record
	var pods []corev1.Pod
	fn, err := s.client.Get(ctx, of.Function)
	if err == nil {
		pods, err = s.client.podsOf(ctx, fn)
	}
	if err != nil {
		s.noteUnread("instance "+string(of.CID), err)
		return
	}
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return cidOf(&pod) == string(of.CID) })
	if i < 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("the pod of instance %s is gone, and its log with it", of.CID))
		return
	}
	s.Node = pods[i].Spec.NodeName
	if fn.Spec.Template.Concurrency > 1 {
		s.Notes = append(s.Notes, fmt.Sprintf("the instance runs up to %d calls at a time: the lines of others may be among these", fn.Spec.Template.Concurrency))
	}
	from, to := of.Claimed.Add(-clockSlack), of.Ended.Add(clockSlack)
	err = s.read(ctx, &pods[i], functionContainer, from, func(at time.Time, line []byte) bool {
		if !at.Before(from) && !at.After(to) {
			s.add(string(of.CID), line)
		}
		return !at.After(to)
	})
	if err == nil {
		err = s.read(ctx, &pods[i], agentContainer, from, func(at time.Time, line []byte) bool {
			if bytes.Contains(line, s.text) {
				s.add(string(of.CID)+" agent", line)
			}
			return !at.After(to)
		})
	}
	if err != nil {
		s.noteUnread(pods[i].Name, err)
	}
}

func (s *callSearch) add(source string, line []byte) {
	switch {
	case len(s.Lines) < maxLines:
		s.Lines = append(s.Lines, invocation.Line{Source: source, Text: string(bytes.TrimRight(line, "\r\n"))})
	case len(s.Lines) == maxLines:
		s.Lines = append(s.Lines, invocation.Line{Source: source, Text: "..."})
		s.Notes = append(s.Notes, fmt.Sprintf("there are more than the first %d lines", maxLines))
	}
}

// read passes the lines of a container since a time to take, until take returns false. A
// container without a log has no lines.
func (s *callSearch) read(ctx context.Context, pod *corev1.Pod, container string, since time.Time, take func(at time.Time, line []byte) bool) error {
	// It counts in seconds.
	from := metav1.NewTime(since.Truncate(time.Second))
	source, err := s.client.logs.OpenLog(ctx, pod.Namespace, pod.Name,
		&corev1.PodLogOptions{Container: container, Timestamps: true, SinceTime: &from})
	switch {
	case isNotYet(err):
		return nil
	case err != nil:
		return s.client.explain(invocation.FunctionKey{Namespace: pod.Namespace, Name: pod.Name}, err)
	}
	defer source.Close()
	lines, last := bufio.NewReaderSize(source, maxLine), since
	for {
		line, err := lines.ReadSlice('\n')
		if stamp, rest, ok := bytes.Cut(line, []byte(" ")); ok {
			if at, stampErr := time.Parse(time.RFC3339Nano, string(stamp)); stampErr == nil {
				last, line = at, rest
			}
		}
		if len(line) > 0 && !take(last, line) {
			return nil
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return s.client.explain(invocation.FunctionKey{Namespace: pod.Namespace, Name: pod.Name}, err)
		}
	}
}

// phases are those of a call, in order, as gateways log them.
var phases = []string{"admit", "queue", "core", "claim", "execute", "return"}

// parseCallEnded parses a gateway's log line about the end of a call; false if it is another
// line.
func parseCallEnded(line []byte) (invocation.Record, bool) {
	var said struct {
		Message string `json:"msg"`
		invocation.Record
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &said) != nil || said.Message != "call ended" || json.Unmarshal(line, &fields) != nil {
		return invocation.Record{}, false
	}
	for _, phase := range phases {
		var ms float64
		if json.Unmarshal(fields[phase+"_ms"], &ms) == nil {
			said.Phases = append(said.Phases, invocation.PhaseTime{Phase: phase, Took: time.Duration(ms * float64(time.Millisecond))})
		}
	}
	return said.Record, true
}
