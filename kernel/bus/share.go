package bus

import (
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

// What one extension may have on its way to the disk. Alone it may have plenty,
// which makes large groups. While others commit, too, it may have so little
// that they wait for it about as long as for the disk.
const (
	aloneCommits  = 2048
	aloneBytes    = 32 << 20
	sharedCommits = 16
	bytesEach     = 16 << 10 // for each commit that it may have, in the mean

	applyTime = 100 * time.Microsecond // that a commit may take, for weighing it against the disk
	// Beside others, half of the writer's time is an extension's, and so much at
	// once. Long commits cost more than their time: they hold everybody up.
	timeShare  = 0.5
	timeBurst  = 500 * time.Millisecond
	heavyTime  = time.Millisecond // from here on a commit costs more than its time
	timeOfByte = 20 * time.Nanosecond
	maxDebt    = 2 * time.Second
	longestNap = 100 * time.Millisecond
)

// share divides the one writer of the store between extensions: whoever sends
// more than its share waits, and nobody else does.
type share struct {
	mu      sync.Mutex
	users   map[string]*user
	disk    time.Duration // that a commit takes, smoothed
	company Company       // of those who commit
}

// user is one extension.
type user struct {
	commits, bytes int // on their way
	waiting        int
	room           *sync.Cond
	debt           time.Duration // of writing, paid off over time; less than zero: saved
	paid           time.Time
}

// owes is what the extension has used up of the writer's time.
func (u *user) owes(now time.Time) time.Duration {
	u.debt = max(-timeBurst, u.debt-time.Duration(float64(now.Sub(u.paid))*timeShare))
	u.paid = now
	return u.debt
}

// price is what a commit costs that took so long to apply.
func price(took time.Duration, size int) time.Duration {
	took += time.Duration(size) * timeOfByte
	return took + time.Duration(float64(took)*float64(took)/float64(heavyTime))
}

func newShare() *share { return &share{users: map[string]*user{}} }

// seen notes that an extension commits.
func (s *share) seen(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.company.Note(id, time.Now())
}

// window is how many commits an extension may have on their way.
func (s *share) window(id string, now time.Time) int {
	if s.company.Alone(id, now) {
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

// enter waits until there is room for the first of the commits of an extension,
// and says for how many of them there is, and their size.
func (s *share) enter(id string, commits []*busv1.Commit) (n, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	u := s.users[id]
	if u == nil {
		u = &user{room: sync.NewCond(&s.mu), paid: now}
		s.users[id] = u
	}
	s.company.Note(id, now)
	size := sizeOf(commits[0])
	for {
		if owed := u.owes(now); owed > 0 && s.window(id, now) < aloneCommits {
			u.waiting++
			s.mu.Unlock()
			time.Sleep(min(time.Duration(float64(owed)/timeShare), longestNap))
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
		n, bytes = n+1, bytes+size
		u.commits++
		u.bytes += size
		if n == len(commits) {
			return n, bytes
		}
		if size = sizeOf(commits[n]); !u.fits(window, size) {
			return n, bytes
		}
	}
}

// leave says that commits are done that were one update, how long it took to
// apply them, and how long it was from then on; 0: they were not applied.
func (s *share) leave(id string, commits, size int, applying, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if took > 0 {
		s.disk += (took - s.disk) / 8
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
