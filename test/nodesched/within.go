package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// order is one round of an attack, which the harness lets a pod's process make on the node agent.
type order struct {
	Attack, Node string
	Pod, Victim  identity
}

// identity is who a pod is.
type identity struct{ Namespace, Function, Name, Token string }

func (p *tenantPod) identity() identity {
	return identity{p.namespace, p.function, p.name, p.token}
}

func (i identity) pod(node string) *tenantPod {
	return &tenantPod{namespace: i.Namespace, function: i.Function, name: i.Name, token: i.Token, node: node}
}

// within lets the process of a pod attack for a round.
func (s *siege) within(p *tenantPod, a attack) error {
	line, err := json.Marshal(order{Attack: a.name, Node: s.addr, Pod: p.identity(), Victim: s.victims[0].identity()})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.stdin, "%s\n", line); err != nil {
		return err
	}
	answer, err := p.answers.ReadString('\n')
	if err != nil {
		return err
	}
	welcomed, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
	s.welcomed.Add(welcomed)
	return err
}

// attacker is the agent of an attacker's pod within the pod's process, from the first round on.
type attacker struct {
	siege  *siege
	cancel context.CancelFunc
	pod    *tenantPod
	rounds int
}

// round attacks for a round, and returns how many streams were taken for another pod's.
func (a *attacker) round(line []byte) (welcomed int64, err error) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(attacks, func(x attack) bool { return x.name == o.Attack && x.within })
	if i < 0 {
		return 0, errors.New("no attack from within a pod: " + o.Attack)
	}
	if a.siege == nil {
		a.pod = o.Pod.pod(o.Node)
		if a.pod.talk, err = a.pod.open(nil); err != nil {
			return 0, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		a.siege, a.cancel = &siege{addr: o.Node, ctx: ctx, victims: []*tenantPod{o.Victim.pod(o.Node)}}, cancel
	}
	err = attacks[i].do(a.siege, a.pod, a.rounds)
	a.rounds++
	return a.siege.welcomed.Swap(0), err
}

func (a *attacker) end() {
	if a.siege == nil {
		return
	}
	a.cancel()
	a.pod.talk.end()
	_ = a.siege.stop()
}
