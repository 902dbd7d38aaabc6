package servers

import (
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// Pair is PostgreSQL: a primary, and perhaps a standby that commits wait for.
type Pair struct {
	Primary, Standby *postgrestest.Server

	ground   *Ground
	standbys int // that there ever were
}

// Settings of the servers. Their disks are those of a test, but they wait for them.
var settings = []string{"shared_buffers=64MB", "max_connections=100", "wal_sender_timeout=5s"}

// Start starts a primary, and with synchronous a standby that its commits wait for.
func Start(g *Ground, synchronous bool) *Pair {
	s := &Pair{ground: g, Primary: postgrestest.Start(g, settings...)}
	if synchronous {
		s.AddStandby()
	}
	return s
}

// AddStandby gives the primary a synchronous standby.
func (s *Pair) AddStandby() {
	s.standbys++
	name := fmt.Sprint("standby", s.standbys)
	s.Standby = s.Primary.Standby(name)
	s.Primary.Do("ALTER SYSTEM SET synchronous_standby_names = '" + name + "'")
	s.Primary.Do("SELECT pg_reload_conf()")
	for range 600 {
		synchronous := s.Primary.Do("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
		if synchronous[0] == "1" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.ground.Fatal("the standby does not become synchronous")
}

// Desert lets commits wait for no standby any more.
func Desert(s *postgrestest.Server) {
	s.Do("ALTER SYSTEM SET synchronous_standby_names = ''")
	s.Do("SELECT pg_reload_conf()")
}
