package tasks

import (
	"fmt"
	"strings"
)

// Prefixes of the rows. An agent is identified by main or by the id of its task,
// which is never reused. Numbers increase, so key order is the order of creation.
const (
	taskPrefix      = "task/"    // root/name: Task
	promptPrefix    = "prompt/"  // id: text
	resultPrefix    = "result/"  // id: Result
	queuePrefix     = "queue/"   // root/agent: queue
	queuedPrefix    = "queued/"  // root/agent/number: name of a task that has not started
	workingPrefix   = "working/" // root/agent/id: name of a running task
	inboxPrefix     = "inbox/"   // root/agent/sender/number: Item
	orderPrefix     = "order/"   // root/agent/number: sender of an item, in the order of arrival
	unnoticedPrefix = "unnamed/" // root/number: sender of a result that no notice has named
	noticedPrefix   = "named/"   // root/number: number of the notice that named it
	noticePrefix    = "notice/"  // root: notice
	deferredPrefix  = "follow/"  // root/number: deferred
	fencePrefix     = "fence/"   // root: present while receives are deferred; written with each of them
	countPrefix     = "count/"   // root: roughly the newest number in a generated name
)

func taskKey(root, name string) string            { return taskPrefix + root + "/" + name }
func queueKey(root, agent string) string          { return queuePrefix + root + "/" + agent }
func queuedOf(root, agent string) string          { return queuedPrefix + root + "/" + agent + "/" }
func workingOf(root, agent string) string         { return workingPrefix + root + "/" + agent + "/" }
func inboxOf(root, agent string) string           { return inboxPrefix + root + "/" + agent + "/" }
func inboxFrom(root, agent, sender string) string { return inboxOf(root, agent) + sender + "/" }
func orderOf(root, agent string) string           { return orderPrefix + root + "/" + agent + "/" }
func unnoticedOf(root string) string              { return unnoticedPrefix + root + "/" }
func noticedOf(root string) string                { return noticedPrefix + root + "/" }
func deferredOf(root string) string               { return deferredPrefix + root + "/" }

// seqKey formats a number as the last part of a key.
func seqKey(number int64) string { return fmt.Sprintf("%016x", number) }

// lastOf returns the last part of a key.
func lastOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// rootOf returns the root in a key.
func rootOf(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	root, _, _ := strings.Cut(rest, "/")
	return root
}
