# A node: the first process of a PID, a mount and a cgroup namespace, so that
# killing it ends its runtime and all its containers, and takes their mounts along.
# node.sh enter STATE NODE-FOLDER CGROUP KUBELET ARGUMENTS...
set -eu
step=$1 state=$2 node=$3 cgroup=$4
shift 4

# The hierarchies of version 1, and the one of version 2.
hierarchies=
for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do
	if [ -e "$dir/cgroup.procs" ] && [ ! -L "$dir" ]; then
		hierarchies="$hierarchies $dir"
		if [ "$dir" = /sys/fs/cgroup ]; then break; fi
	fi
done

# give PARENT CHILD: what a new cgroup needs of its parent to hold processes.
give() {
	mkdir -p "$1/$2"
	for file in cpuset.cpus cpuset.mems; do
		if [ -e "$1/$file" ] && [ ! -e "$1/cgroup.controllers" ]; then cat "$1/$file" >"$1/$2/$file"; fi
	done
	if [ -e "$1/cgroup.controllers" ]; then
		for controller in $(cat "$1/cgroup.controllers"); do
			echo "+$controller" >"$1/cgroup.subtree_control" || :
		done
	fi
}

if [ "$step" = enter ]; then
	for dir in $hierarchies; do
		give "$dir" "${cgroup%/*}"
		give "$dir/${cgroup%/*}" "${cgroup##*/}"
		echo 0 >"$dir/$cgroup/cgroup.procs"
	done
	exec unshare --cgroup sh "$0" run "$state" "$node" "$cgroup" "$@"
fi

mount --make-rprivate /
for dir in $hierarchies; do
	mount --bind "$dir/$cgroup" "$dir"
	# In version 2, a cgroup with processes of its own has no others below it.
	if [ "$dir" = /sys/fs/cgroup ]; then
		mkdir -p "$dir/node"
		echo 0 >"$dir/node/cgroup.procs"
	fi
done
# The node's own /run, /var/lib and /var/log; /run is empty after a start, as on
# any machine. The state folder stays visible below them.
rm -rf "$node/disk/run"
for dir in /run /var/lib /var/log; do
	mkdir -p "$node/disk$dir"
done
mkdir -p "$node/disk$state"
mount --bind "$state" "$node/disk$state"
for dir in /run /var/lib /var/log; do
	mount --rbind "$node/disk$dir" "$dir"
done
mount -t proc proc /proc
mount --make-rshared /

# As a service manager would, start again what ends.
keep() {
	while :; do
		"$@" || :
		echo "$1 has ended and starts again"
		sleep 1
	done
}

keep containerd --config "$node/containerd.toml" </dev/null >>"$node/containerd.log" 2>&1 &
tries=0
until ctr -n k8s.io images import "$state/pause.tar" >>"$node/containerd.log" 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -ge 300 ]; then
		echo "containerd does not answer; see $node/containerd.log"
		exit 1
	fi
	sleep 0.1
done
# The starter closes this pipe as soon as the API server answers.
cat >/dev/null
keep "$@" </dev/null >>"$node/kubelet.log" 2>&1 &
wait
