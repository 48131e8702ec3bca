// The dumbbell of bench/scenarios/speed-tcp.toml in ns-3, written as its users would and tuned where that changes no result.
//
// Links of 10, 1 and 10 Gbit/s, delays of 1, 18 and 1 ms, drop-tail queues, N bulk transfers from S to T, starts spread over 100 ms. Tuned: no tracing,
// no checksums, no packet metadata (as ns-3 comes), no queue discs in front of the devices' own queues, send buffers that never limit a window but
// are no larger than that (BulkSend fills them at the start, segment by segment), and a choice of event schedulers. SACK, timestamps, window scaling
// and PRR are ns-3's defaults.
//
// A full segment is PACKET bytes on the wire as our scenario counts them, PPP's two bytes included. Prints one line of JSON; the rate is over the wall
// time of Simulator::Run alone.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <chrono>
#include <iostream>

using namespace ns3;

namespace
{
const uint32_t PPP_HEADER = 2;
const uint32_t HEADERS = PPP_HEADER + 20 + 32; // IP's, and TCP's with timestamps
const double BOTTLENECK_BPS = 1e9;
const double RTT_S = 0.04;
} // namespace

int
main(int argc, char* argv[])
{
    uint32_t flows = 100;
    double duration = 2;
    std::string scheduler = "Heap";
    std::string congestion = "TcpNewReno";
    uint32_t limit = 10000;
    uint32_t packet = 1050;
    uint32_t sendBuffer = 0;
    uint32_t seed = 1;
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "number of transfers", flows);
    cmd.AddValue("duration", "simulated seconds", duration);
    cmd.AddValue("scheduler", "Map, Heap, Calendar, PriorityQueue or List", scheduler);
    cmd.AddValue("congestion", "TcpNewReno, TcpCubic, ...", congestion);
    cmd.AddValue("limit", "packets that each queue holds", limit);
    cmd.AddValue("packet", "bytes of a full packet on the wire", packet);
    cmd.AddValue("send-buffer", "bytes; 0 for four times a flow's share of what path and queue hold", sendBuffer);
    cmd.AddValue("seed", "seed of the starts", seed);
    cmd.Parse(argc, argv);

    const uint32_t segment = packet - HEADERS;
    if (sendBuffer == 0)
    {
        const double held = BOTTLENECK_BPS / 8 * RTT_S + double(limit) * packet;
        sendBuffer = std::max(131072u, uint32_t(4 * held / flows)); // 131072 is ns-3's default
    }
    RngSeedManager::SetSeed(seed);
    GlobalValue::Bind("SchedulerType", StringValue("ns3::" + scheduler + "Scheduler"));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + congestion));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1)); // every packet is acknowledged
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1u << 28));

    NodeContainer nodes; // S, R, D, T
    nodes.Create(4);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer last;
    Ptr<Queue<Packet>> bottleneck;
    const struct
    {
        const char* rate;
        const char* delay;
    } links[] = {{"10Gbps", "1ms"}, {"1Gbps", "18ms"}, {"10Gbps", "1ms"}};
    for (uint32_t i = 0; i < 3; i++)
    {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(links[i].rate));
        link.SetDeviceAttribute("Mtu", UintegerValue(packet - PPP_HEADER));
        link.SetChannelAttribute("Delay", StringValue(links[i].delay));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit)));
        link.DisableFlowControl(); // so that Assign installs no queue disc
        NetDeviceContainer devices = link.Install(nodes.Get(i), nodes.Get(i + 1));
        last = addresses.Assign(devices);
        addresses.NewNetwork();
        if (i == 1)
        {
            bottleneck = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; i++)
    {
        const uint16_t port = 1000 + i;
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(last.GetAddress(1), port));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.SetAttribute("SendSize", UintegerValue(segment));
        source.Install(nodes.Get(0)).Start(Seconds(jitter->GetValue(0, 0.1)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(3)));
    }
    sinks.Start(Seconds(0));

    Simulator::Stop(Seconds(duration));
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    const double packets = double(bytes) / segment;
    const double sent = double(bottleneck->GetTotalReceivedBytes()) - double(bottleneck->GetNBytes());
    std::cout << "{\"flows\":" << flows << ",\"data_packets\":" << uint64_t(packets) << ",\"wall_s\":" << wall << ",\"packets_per_s\":" << packets / wall
              << ",\"utilisation\":" << sent * 8 / duration / BOTTLENECK_BPS << ",\"drops\":" << bottleneck->GetTotalDroppedPackets()
              << ",\"events\":" << Simulator::GetEventCount() << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
