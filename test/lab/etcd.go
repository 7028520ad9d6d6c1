package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Prefix is that of Windlass's keys in etcd.
const Prefix = "/windlass"

// Etcd is the etcd that Windlass uses, not that of the API server.
type Etcd struct {
	Members []*Member
	config  Config
}

// startEtcd starts its members.
func (l *Lab) startEtcd(ctx context.Context) error {
	l.Etcd.config = l.Config
	for i := range etcdMembers {
		m, err := l.open(ctx, "etcd", i+1, kubernetesProgram("etcd"), nil, l.Etcd.arguments)
		if err != nil {
			return err
		}
		m.ready = fmt.Sprintf("http://%s/health", hostPort(m.Addr, etcdClientPort))
		l.Etcd.Members = append(l.Etcd.Members, m)
	}
	return l.Etcd.revive(ctx)
}

// etcdQuota is how many bytes etcd may hold, few enough to fill it quickly.
const etcdQuota = 32 << 20

// etcdCluster names the members and where they meet.
func etcdCluster() string {
	var members []string
	for i := range etcdMembers {
		members = append(members, fmt.Sprintf("etcd-%d=http://%s", i+1, hostPort(at(1, i+1), etcdPeerPort)))
	}
	return strings.Join(members, ",")
}

func (e *Etcd) arguments(m *Member) []string {
	client, peer := "http://"+hostPort(m.Addr, etcdClientPort), "http://"+hostPort(m.Addr, etcdPeerPort)
	return []string{
		"--name=" + m.Name, "--data-dir=" + e.config.data(m.Name), "--logger=zap", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + etcdCluster(), "--initial-cluster-token=lab",
		fmt.Sprintf("--quota-backend-bytes=%d", etcdQuota),
	}
}

// Client is a client of all members of etcd.
func (e *Etcd) Client() (*clientv3.Client, error) {
	var endpoints []string
	for _, m := range e.Members {
		endpoints = append(endpoints, hostPort(m.Addr, etcdClientPort))
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

// Leader is the member that leads.
func (e *Etcd) Leader(ctx context.Context) (*Member, error) {
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, m := range e.Members {
		status, err := client.Status(ctx, hostPort(m.Addr, etcdClientPort))
		if err == nil && status.Leader == status.Header.MemberId {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no member of etcd leads")
}

// Wipe kills all members of etcd, removes what they have, and starts them.
func (e *Etcd) Wipe(ctx context.Context) error {
	for _, m := range e.Members {
		m.Kill()
		if err := os.RemoveAll(e.config.data(m.Name)); err != nil {
			return err
		}
	}
	return e.revive(ctx)
}

// revive starts all members, of which none is ready without another.
func (e *Etcd) revive(ctx context.Context) error {
	for _, m := range e.Members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	for _, m := range e.Members {
		if err := m.Revive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// BackUp kills all members of etcd for a moment to copy what they have.
func (e *Etcd) BackUp(ctx context.Context) error {
	for _, m := range e.Members {
		m.Kill()
		backup := e.config.data(m.Name + ".backup")
		if err := os.RemoveAll(backup); err != nil {
			return err
		}
		if err := os.CopyFS(backup, os.DirFS(e.config.data(m.Name))); err != nil {
			return err
		}
	}
	return e.revive(ctx)
}

// Restore kills all members and starts them with what BackUp has copied,
// with the revisions of that time.
func (e *Etcd) Restore(ctx context.Context) error {
	for _, m := range e.Members {
		m.Kill()
		if err := os.RemoveAll(e.config.data(m.Name)); err != nil {
			return err
		}
		if err := os.Rename(e.config.data(m.Name+".backup"), e.config.data(m.Name)); err != nil {
			return err
		}
	}
	return e.revive(ctx)
}

// etcdFiller is a prefix of keys that nobody else uses.
const etcdFiller = "/filler/"

// Fill writes until etcd has no space left and refuses all that writes.
func (e *Etcd) Fill(ctx context.Context) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	large := strings.Repeat("x", 1<<20)
	for i := range 2 * etcdQuota >> 20 {
		if _, err := client.Put(ctx, fmt.Sprint(etcdFiller, i), large); errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("etcd took twice its quota of %d bytes", etcdQuota)
}

// Empty undoes Fill, as an operator does.
func (e *Etcd) Empty(ctx context.Context) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	deleted, err := client.Delete(ctx, etcdFiller, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	if _, err := client.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	for _, m := range e.Members {
		if _, err := client.Defragment(ctx, hostPort(m.Addr, etcdClientPort)); err != nil {
			return err
		}
	}
	_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
