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

// startEtcd starts the three members that Windlass uses.
func (l *Lab) startEtcd(ctx context.Context) error {
	for i := range etcdMembers {
		m, err := l.open(ctx, "etcd", i+1, l.Config.Kubernetes+"/etcd", nil, l.etcdArguments)
		if err != nil {
			return err
		}
		m.ready = fmt.Sprintf("http://%s/health", hostPort(m.Addr, etcdClientPort))
		l.Etcd = append(l.Etcd, m)
	}
	return l.reviveEtcd(ctx)
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

func (l *Lab) etcdArguments(m *Member) []string {
	client, peer := "http://"+hostPort(m.Addr, etcdClientPort), "http://"+hostPort(m.Addr, etcdPeerPort)
	return []string{
		"--name=" + m.Name, "--data-dir=" + l.Config.data(m.Name), "--logger=zap", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + etcdCluster(), "--initial-cluster-token=lab",
		fmt.Sprintf("--quota-backend-bytes=%d", etcdQuota),
	}
}

// EtcdClient is a client of all members of etcd.
func (l *Lab) EtcdClient() (*clientv3.Client, error) {
	var endpoints []string
	for _, m := range l.Etcd {
		endpoints = append(endpoints, hostPort(m.Addr, etcdClientPort))
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

// EtcdLeader is the member that leads.
func (l *Lab) EtcdLeader(ctx context.Context) (*Member, error) {
	client, err := l.EtcdClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, m := range l.Etcd {
		status, err := client.Status(ctx, hostPort(m.Addr, etcdClientPort))
		if err == nil && status.Leader == status.Header.MemberId {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no member of etcd leads")
}

// WipeEtcd kills all members of etcd, removes what they have, and starts them.
func (l *Lab) WipeEtcd(ctx context.Context) error {
	for _, m := range l.Etcd {
		m.Kill()
		if err := os.RemoveAll(l.Config.data(m.Name)); err != nil {
			return err
		}
	}
	return l.reviveEtcd(ctx)
}

// reviveEtcd starts all members, of which none is ready without another.
func (l *Lab) reviveEtcd(ctx context.Context) error {
	for _, m := range l.Etcd {
		if err := m.Start(); err != nil {
			return err
		}
	}
	for _, m := range l.Etcd {
		if err := m.Revive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// BackUpEtcd kills all members of etcd for a moment to copy what they have.
func (l *Lab) BackUpEtcd(ctx context.Context) error {
	for _, m := range l.Etcd {
		m.Kill()
		backup := l.Config.data(m.Name + ".backup")
		if err := os.RemoveAll(backup); err != nil {
			return err
		}
		if err := os.CopyFS(backup, os.DirFS(l.Config.data(m.Name))); err != nil {
			return err
		}
	}
	return l.reviveEtcd(ctx)
}

// RestoreEtcd kills all members and starts them with what BackUpEtcd has copied,
// with the revisions of that time.
func (l *Lab) RestoreEtcd(ctx context.Context) error {
	for _, m := range l.Etcd {
		m.Kill()
		if err := os.RemoveAll(l.Config.data(m.Name)); err != nil {
			return err
		}
		if err := os.Rename(l.Config.data(m.Name+".backup"), l.Config.data(m.Name)); err != nil {
			return err
		}
	}
	return l.reviveEtcd(ctx)
}

// etcdFiller is a prefix of keys that nobody else uses.
const etcdFiller = "/filler/"

// FillEtcd writes until etcd has no space left and refuses all that writes.
func (l *Lab) FillEtcd(ctx context.Context) error {
	client, err := l.EtcdClient()
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

// EmptyEtcd undoes FillEtcd, as an operator does.
func (l *Lab) EmptyEtcd(ctx context.Context) error {
	client, err := l.EtcdClient()
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
	for _, m := range l.Etcd {
		if _, err := client.Defragment(ctx, hostPort(m.Addr, etcdClientPort)); err != nil {
			return err
		}
	}
	_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
