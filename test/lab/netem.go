package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Netem is what a link does to packets, in both directions. Shares are of all
// packets, 0 to 1.
type Netem struct {
	// Delay is how long a packet takes, give or take Jitter.
	Delay, Jitter time.Duration
	// Lost packets do not arrive, Doubled ones twice, Hasty ones without the
	// delay and so before others, and Corrupt ones with a wrong bit.
	Lost, Doubled, Hasty, Corrupt float64
}

// packetCopy is one arrival of a packet.
type packetCopy struct {
	delay time.Duration
	// bit is the one that is wrong, or -1.
	bit int
}

// schedule are the arrivals of a packet of so many bytes.
func (w Netem) schedule(rng *rand.Rand, size int) []packetCopy {
	if rng.Float64() < w.Lost {
		return nil
	}
	one := func() packetCopy {
		f := packetCopy{bit: -1}
		if rng.Float64() >= w.Hasty {
			f.delay = max(0, w.Delay+time.Duration((2*rng.Float64()-1)*float64(w.Jitter)))
		}
		if rng.Float64() < w.Corrupt {
			f.bit = rng.IntN(8 * size)
		}
		return f
	}
	if rng.Float64() < w.Doubled {
		return []packetCopy{one(), one()}
	}
	return []packetCopy{one()}
}

// maxFlying bounds the packets that are on their way on a link. More are lost, as
// with every queue of a network.
const maxFlying = 20_000

// Degrade puts the space's link into bad weather until brighten is called. The kernel
// need not be able to do that: the lab carries the packets itself.
func (s *Space) Degrade(ctx context.Context, w Netem, seed uint64) (brighten func() error, err error) {
	near, far := "n"+s.port, "f"+s.port
	near, far = near[:min(len(near), 15)], far[:min(len(far), 15)]
	if err := batch(ctx, fmt.Sprintf("link add %[1]s type veth peer name %[2]s\nlink set %[1]s up\nlink set %[2]s up\n", near, far)); err != nil {
		return nil, err
	}
	// A program that sends to the lab must finish a packet itself, with its checksum,
	// as there is no device that would.
	err = errors.Join(unhelped(far), s.Do(func() error { return unhelped("eth0") }))
	if err == nil {
		err = batch(ctx, fmt.Sprintf("link set %s nomaster\nlink set %s master %s\n", s.port, far, bridge))
	}
	if err != nil {
		return nil, err
	}
	carrying, stop := context.WithCancel(ctx)
	var ending sync.WaitGroup
	for i, way := range [][2]string{{s.port, near}, {near, s.port}} {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		from, to, err := listenAndSend(way[0], way[1])
		if err != nil {
			stop()
			return nil, err
		}
		ending.Go(func() { carry(carrying, from, to, w, rng) })
	}
	return func() error {
		stop()
		ending.Wait()
		return batch(context.WithoutCancel(ctx), fmt.Sprintf("link delete %s\nlink set %s master %s\n", near, s.port, bridge))
	}, nil
}

// wire is a raw socket on a device.
type wire struct {
	fd   int
	addr unix.SockaddrLinklayer
}

func listenAndSend(from, to string) (in, out wire, err error) {
	if in, err = openWire(from); err != nil {
		return wire{}, wire{}, err
	}
	if out, err = openWire(to); err != nil {
		_ = unix.Close(in.fd)
		return wire{}, wire{}, err
	}
	return in, out, nil
}

// everything is all protocols, in the order of the network's bytes.
const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00

func openWire(device string) (wire, error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return wire{}, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything)
	if err != nil {
		return wire{}, err
	}
	w := wire{fd: fd, addr: unix.SockaddrLinklayer{Protocol: everything, Ifindex: link.Index}}
	member := unix.PacketMreq{Ifindex: int32(link.Index), Type: unix.PACKET_MR_PROMISC}
	err = errors.Join(
		unix.Bind(fd, &w.addr),
		unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return wire{}, fmt.Errorf("a raw socket on %s: %w", device, err)
	}
	return w, nil
}

// carry takes packets from one device to another until ctx ends and the last one
// has arrived.
func carry(ctx context.Context, from, to wire, w Netem, rng *rand.Rand) {
	var flying atomic.Int64
	var ending sync.WaitGroup
	defer func() {
		ending.Wait()
		_ = unix.Close(from.fd)
		_ = unix.Close(to.fd)
	}()
	buffer := make([]byte, 1<<16)
	for ctx.Err() == nil {
		n, sender, err := unix.Recvfrom(from.fd, buffer, 0)
		link, ok := sender.(*unix.SockaddrLinklayer)
		if err != nil || !ok || link.Pkttype == unix.PACKET_OUTGOING || n == 0 {
			continue
		}
		for _, f := range w.schedule(rng, n) {
			if flying.Load() >= maxFlying {
				continue
			}
			packet := append([]byte(nil), buffer[:n]...)
			if f.bit >= 0 {
				packet[f.bit/8] ^= 1 << (f.bit % 8)
			}
			flying.Add(1)
			ending.Add(1)
			time.AfterFunc(f.delay, func() {
				defer ending.Done()
				defer flying.Add(-1)
				_ = unix.Sendto(to.fd, packet, 0, &to.addr)
			})
		}
	}
}

// unhelped turns a device's own work on packets off.
func unhelped(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ command, data uint32 }{command: unix.ETHTOOL_STXCSUM}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:], device)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); e != 0 {
		return fmt.Errorf("turning the checksums of %s off: %w", device, e)
	}
	return nil
}
