package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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

// etcdTiming makes the members find a new leader as quickly as they do by default.
const etcdQuota = 64 << 20

func (l *Lab) etcdArguments(m *Member) []string {
	var cluster []string
	for i := range etcdMembers {
		cluster = append(cluster, fmt.Sprintf("etcd-%d=http://%s", i+1, hostPort(at(1, i+1), etcdPeerPort)))
	}
	client, peer := "http://"+hostPort(m.Addr, etcdClientPort), "http://"+hostPort(m.Addr, etcdPeerPort)
	return []string{
		"--name=" + m.Name, "--data-dir=" + l.Config.data(m.Name), "--logger=zap", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + strings.Join(cluster, ","), "--initial-cluster-token=lab",
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
