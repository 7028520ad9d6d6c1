package kubeclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// unread is a log that could not be read, or not to its end.
type unread struct {
	log *podLog
	err error
}

// copyAll copies what is in the logs of pods, in the order of time. It fails if it could read none
// to its end: the pods of a node that is gone exist for minutes, and hide no others.
func (f *follower) copyAll(ctx context.Context, pods []corev1.Pod) error {
	var opened []*podLines
	defer func() {
		for _, p := range opened {
			_ = p.source.Close()
		}
	}()
	var failed []unread
	var waiting error
	for i := range pods {
		log := &podLog{pod: &pods[i]}
		p, err := f.openLog(ctx, log)
		switch {
		case isNotYet(err):
			waiting = err
			continue
		case err != nil:
			failed = append(failed, unread{log, err})
		default:
			opened = append(opened, p)
		}
		f.logs[pods[i].UID] = log
	}
	broken, err := f.merge(opened)
	if err != nil {
		return err
	}
	failed = append(failed, broken...)
	if len(failed) > 0 && (ctx.Err() != nil || len(broken) == len(opened) && waiting == nil) {
		return f.client.explain(f.request.Key, failed[0].err)
	}
	for _, u := range failed {
		f.noteUnread(u.log, f.client.explain(f.request.Key, u.err))
	}
	switch key := f.request.Key; {
	case len(opened) > 0:
		return nil
	case waiting != nil:
		return &Error{Reason: ReasonNoPod, Err: waiting, Message: fmt.Sprintf(
			"no instance of function %s has started yet, as far as the cluster knows, which can be a second late: "+
				"see windlass describe %s for the reason, or wait with --follow", key, key)}
	default:
		return &Error{Reason: ReasonNoPod, Message: fmt.Sprintf(
			"function %s has no instance, and the logs of those that ended went with their pods: call it first, or wait for one with --follow", key)}
	}
}

// podLines reads what a pod's log holds.
type podLines struct {
	log    *podLog
	source io.ReadCloser
	lines  *bufio.Reader
	// text is the current line, or a piece of a long one, and at its time.
	text []byte
	at   time.Time
}

func (f *follower) openLog(ctx context.Context, log *podLog) (*podLines, error) {
	source, err := f.client.logs.OpenLog(ctx, log.pod.Namespace, log.pod.Name, log.options(f.request))
	if err != nil {
		return nil, err
	}
	return &podLines{log: log, source: source, lines: bufio.NewReaderSize(source, maxLine)}, nil
}

// advance goes to the next line; false if there is none.
func (p *podLines) advance() (bool, error) {
	line, err := p.lines.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
		return false, err
	}
	if len(line) == 0 {
		return false, nil
	}
	p.text = line
	if stamp, text, ok := bytes.Cut(line, []byte(" ")); ok {
		// The rest of a long line has no time.
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			p.text, p.at = text, at
			p.log.last = at
		}
	}
	return true, nil
}

// merge prints the lines of all pods in the order of time: the last ones, if only these
// are asked for. It returns the logs that broke before their ends.
func (f *follower) merge(all []*podLines) (broken []unread, err error) {
	type line struct {
		cid  string
		at   time.Time
		text []byte
	}
	keep := f.request.Tail
	var last []line
	more := func(p *podLines) bool {
		for {
			there, err := p.advance()
			if err != nil {
				broken = append(broken, unread{p.log, err})
			}
			if !there || !p.at.Before(f.request.Since) {
				return there
			}
		}
	}
	var rest []*podLines
	for _, p := range all {
		if more(p) {
			rest = append(rest, p)
		}
	}
	for len(rest) > 0 {
		first := slices.MinFunc(rest, func(a, b *podLines) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(cidOf(a.log.pod), cidOf(b.log.pod)))
		})
		if keep < 0 {
			if err := f.out.write(cidOf(first.log.pod), first.at, first.text); err != nil {
				return nil, err
			}
		} else if last = append(last, line{cidOf(first.log.pod), first.at, bytes.Clone(first.text)}); len(last) > 2*keep {
			last = append(last[:0], last[len(last)-keep:]...)
		}
		if !more(first) {
			rest = slices.DeleteFunc(rest, func(p *podLines) bool { return p == first })
		}
	}
	for _, l := range last[max(0, len(last)-max(keep, 0)):] {
		if err := f.out.write(l.cid, l.at, l.text); err != nil {
			return nil, err
		}
	}
	return broken, nil
}
