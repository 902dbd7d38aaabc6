// Package fair divides what extensions share: the one writer of the store. An
// extension that sends more than its share waits itself, and delays no other.
package fair

import (
	"sync"
	"time"
)

// The limits on what one extension may have queued for the disk. A sole user
// may queue plenty, which makes large groups. While others commit too, its
// limit is so low that they wait for it about as long as for the disk.
const (
	aloneCommits  = 2048
	aloneBytes    = 32 << 20
	sharedCommits = 16
	bytesEach     = 16 << 10 // mean size of the commits that it may queue

	applyTime = 100 * time.Microsecond // that a commit may take, compared with the disk
	// While others commit, an extension may use half of the writer's time, and
	// save up a burst. Long commits cost more than their time: they delay all
	// others.
	timeShare  = 0.5
	timeBurst  = 500 * time.Millisecond
	heavyTime  = time.Millisecond // from here on a commit costs more than its time
	timeOfByte = 20 * time.Nanosecond
	maxDebt    = 2 * time.Second
	maxSleep   = 100 * time.Millisecond
)

// Share divides the writer between extensions. It is safe for concurrent use.
type Share struct {
	mu       sync.Mutex
	users    map[string]*user
	disk     time.Duration // that a commit takes, smoothed
	activity Activity
}

// user is one extension.
type user struct {
	commits, bytes int // queued
	waiting        int
	room           *sync.Cond
	debt           time.Duration // of the writer's time, paid off over time; below zero: saved
	paid           time.Time
}

// NewShare returns a Share that no extension uses yet.
func NewShare() *Share { return &Share{users: map[string]*user{}} }

// Note notes that an extension commits in another way than through Enter.
func (s *Share) Note(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.Note(id, time.Now())
}

// owes is the debt of the extension at a time.
func (u *user) owes(now time.Time) time.Duration {
	u.debt = max(-timeBurst, u.debt-time.Duration(float64(now.Sub(u.paid))*timeShare))
	u.paid = now
	return u.debt
}

// price is the cost of a commit of a size that took that long to apply.
func price(took time.Duration, size int) time.Duration {
	took += time.Duration(size) * timeOfByte
	return took + time.Duration(float64(took)*float64(took)/float64(heavyTime))
}

// window is how many commits an extension may have queued.
func (s *Share) window(id string, now time.Time) int {
	if s.activity.Alone(id, now) {
		return aloneCommits
	}
	return min(sharedCommits+int(s.disk/applyTime), aloneCommits)
}

func (u *user) fits(window, size int) bool {
	bytes := window * bytesEach
	if window == aloneCommits {
		bytes = aloneBytes
	}
	return u.commits == 0 || u.commits < window && u.bytes+size <= bytes
}

// Enter waits until there is room for the first of n commits of an extension.
// It returns for how many of them there is room, and their size. sizeOf is about
// the size of the i-th commit. Leave must follow.
func (s *Share) Enter(id string, n int, sizeOf func(i int) int) (admitted, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	u := s.users[id]
	if u == nil {
		u = &user{room: sync.NewCond(&s.mu), paid: now}
		s.users[id] = u
	}
	s.activity.Note(id, now)
	size := sizeOf(0)
	for {
		if owed := u.owes(now); owed > 0 && s.window(id, now) < aloneCommits {
			u.waiting++
			s.mu.Unlock()
			time.Sleep(min(time.Duration(float64(owed)/timeShare), maxSleep))
			s.mu.Lock()
			u.waiting--
		} else if u.fits(s.window(id, now), size) {
			break
		} else {
			u.waiting++
			u.room.Wait()
			u.waiting--
		}
		now = time.Now()
	}
	for window := s.window(id, now); ; {
		admitted, bytes = admitted+1, bytes+size
		u.commits++
		u.bytes += size
		if admitted == n {
			return admitted, bytes
		}
		if size = sizeOf(admitted); !u.fits(window, size) {
			return admitted, bytes
		}
	}
}

// Leave ends what Enter began, for commits that were one update of the store:
// how long applying them took, and how long writing took after that; 0: they
// were not applied.
func (s *Share) Leave(id string, commits, size int, applying, writing time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if writing > 0 {
		s.disk += (writing - s.disk) / 8
	}
	u := s.users[id]
	u.commits -= commits
	u.bytes -= size
	if applying > 0 {
		each := time.Duration(commits)
		u.debt = min(u.owes(now)+each*price(applying/each, size/commits), maxDebt)
	}
	if u.waiting == 0 {
		if u.commits == 0 && u.debt <= -timeBurst {
			delete(s.users, id)
		}
		return
	}
	for range min(u.waiting, max(1, s.window(id, now)-u.commits)) {
		u.room.Signal()
	}
}
