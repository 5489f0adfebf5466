# SPDX-License-Identifier: Apache-2.0
# Peer Sidekiq, jobs in Redis. default: one process of ten threads, which logs each job. best: 25, as many as its own
# benchmark has, and it logs warnings; a second process makes it slower on two cores.
require 'json'

WARM_UP = 20
SAMPLES_SECONDS = 30
BATCH = 1000

work, settings, count, dir, _conninfo, path = ARGV
count = count.to_i
is_best = settings != 'default'
ledger = File.join(dir, 'ledger')
File.write(ledger, '')
ENV.update('REDIS_URL' => "unix://#{path}", 'PEER_LEDGER' => ledger, 'PEER_IS_BEST' => is_best ? '1' : '0')
begin
  require 'sidekiq'
  require 'sidekiq/api'
rescue LoadError
  puts 'missing Sidekiq: apt-get install ruby-sidekiq'
  exit
end
require_relative 'noop'

runs = -> { File.size(ledger) / 8 }
started_ns = ->(number) { IO.binread(ledger, 8, number * 8).unpack1('q') }
now_ns = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
args = [1, 'a row of about fifty bytes']

if work == 'drain'
  (0...count).each_slice(BATCH) { |some| Sidekiq::Client.push_bulk('class' => Noop, 'args' => some.map { args }) }
end
$stdout.puts 'ready'
$stdout.flush
$stdin.gets
command = ['sidekiq', '-r', File.join(__dir__, 'noop.rb'), '-c', is_best ? '25' : '10']
pid = Process.spawn(*command, in: '/dev/null', out: :err)

if work == 'drain'
  sleep 0.005 while runs.call < count || Sidekiq::Queue.new.size.positive?
  seconds = (now_ns.call - started_ns.call(0)) / 1e9
else
  ms = []
  end_ns = now_ns.call + SAMPLES_SECONDS * 1_000_000_000
  (WARM_UP + count).times do |number|
    break if now_ns.call > end_ns

    Noop.perform_async(*args)
    enqueued_ns = now_ns.call
    sleep 0.002 while runs.call <= number
    ms << (started_ns.call(number) - enqueued_ns) / 1e6 if number >= WARM_UP
    sleep rand(0.02..0.08)
  end
end

# It writes how many it has done when it ends.
Process.kill('TERM', pid)
Process.wait(pid)
result = { 'ms' => ms }
result = { 'seconds' => seconds, 'runs' => runs.call, 'done' => Sidekiq::Stats.new.processed } if work == 'drain'
$stdout.puts JSON.generate(result)
$stdout.flush
$stdin.gets
